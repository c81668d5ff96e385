"""The long description of the package: README.md, whose links work where there is no checkout.

The README links relatively, so that its links work in a checkout, on a forge and in every branch.
A package index has no files beside it: there, a link leads to the page at the tag of this version.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = r"(?![a-z][a-z0-9+.-]*:|#|/)"
"""What follows is no whole address, no heading of the same page and no path of the machine."""

_LINKS = (
    re.compile(rf"(?P<before>\]\(<?){_RELATIVE}(?P<path>[^)\s>]+)"),
    re.compile(rf"(?m)(?P<before>^\[[^\]]+\]: +<?){_RELATIVE}(?P<path>[^\s>]+)"),
    re.compile(rf"(?P<before>\b(?:href|src|srcset)=\"){_RELATIVE}(?P<path>[^\"\s]+)"),
)
_CODE = re.compile(r"(?ms)^(?:```|~~~).*?^(?:```|~~~)[^\n]*$|`[^`\n]+`")
_PICTURES = (".svg", ".png", ".jpg", ".gif", ".webp")


def with_whole_links(text: str, repository: str, tag: str) -> str:
    """The text, in which a relative link is the address of that file in the repository at ``tag``.

    Pictures get the address of their bytes, everything else that of the page that shows it. What
    stands in code is left as it is.
    """

    def whole(found: re.Match[str]) -> str:
        path = found["path"].removeprefix("./")
        shown = "raw" if path.partition("#")[0].endswith(_PICTURES) else "blob"
        return f"{found['before']}{repository}/{shown}/{tag}/{path}"

    parts, end = [], 0
    for code in [*_CODE.finditer(text), None]:
        prose = text[end : code.start() if code else None]
        for link in _LINKS:
            prose = link.sub(whole, prose)
        parts.append(prose + (code[0] if code else ""))
        end = code.end() if code else end
    return "".join(parts)


class ReadmeHook(MetadataHookInterface):
    """Gives the package its long description when it is built."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata["urls"]["Source"]
        text = with_whole_links(text, repository, f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
