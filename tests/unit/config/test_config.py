"""What a file, an assignment and a keyword argument may say, and what a mistake is told."""

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agents.config import packaged
from agents.config.load import load_settings
from agents.config.settings import Settings
from agents.config.yaml_files import to_yaml
from agents.errors import ConfigError
from banks import ROOT
from examples import examples

DEFAULTS = ROOT / "config" / "config.yaml"
SCHEMA = yaml.safe_load((ROOT / "config" / "schema.yaml").read_text(encoding="utf-8"))
MADE: dict[Path, str] = runpy.run_path(str(ROOT / "docs" / "make_settings.py"))["files"]()

Write = Callable[[str | bytes], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes my.yaml into the current folder, so that messages name it as a user would."""
    monkeypatch.chdir(tmp_path)

    def write(content: str | bytes) -> str:
        data = content.encode() if isinstance(content, str) else content
        Path("my.yaml").write_bytes(data)
        return "my.yaml"

    return write


def refusal(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(*args, **kwargs)
    return str(caught.value)


def schema_keys(schema: Mapping[str, Any], prefix: str = "") -> set[str]:
    keys: set[str] = set()
    for name, below in schema.get("properties", {}).items():
        keys |= {prefix + name} | schema_keys(below, f"{prefix}{name}.")
    return keys


def value_keys(values: Mapping[str, Any], prefix: str = "") -> set[str]:
    keys: set[str] = set()
    for name, below in values.items():
        keys.add(prefix + name)
        if isinstance(below, dict):
            keys |= value_keys(below, f"{prefix}{name}.")
    return keys


def test_every_key_of_the_defaults_is_preceded_by_a_comment() -> None:
    lines = DEFAULTS.read_text(encoding="utf-8").splitlines()
    # Settings are at most three levels deep; further in are the values of a list.
    keys = [at for at, line in enumerate(lines) if re.match(r" {0,4}[a-z_]+:", line)]
    assert [lines[at] for at in keys if not lines[at - 1].lstrip().startswith("# ")] == []


def test_the_schema_is_valid_draft_2020_12() -> None:
    assert SCHEMA["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    Draft202012Validator.check_schema(SCHEMA)


def test_the_schema_and_the_defaults_name_the_same_keys() -> None:
    assert schema_keys(SCHEMA) == value_keys(yaml.safe_load(DEFAULTS.read_text(encoding="utf-8")))


def test_only_provider_configs_take_keys_of_their_own() -> None:
    def open_levels(schema: Mapping[str, Any], path: str) -> set[str]:
        found = set()
        if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
            found.add(path)
        for name, below in schema.get("properties", {}).items():
            found |= open_levels(below, f"{path}.{name}".lstrip("."))
        return found

    assert open_levels(SCHEMA, "") == {
        "embedder.config", "store.config", "llm.config",
        "simulation.world_options", "simulation.policy_options",
    }  # fmt: skip


def test_defaults_are_what_the_packaged_file_says() -> None:
    assert load_settings().to_dict() == yaml.safe_load(DEFAULTS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", MADE, ids=lambda path: path.name)
def test_a_file_of_settings_is_what_the_declarations_make_of_it(path: Path) -> None:
    made = path.read_text(encoding="utf-8") == MADE[path]
    assert made, f"config/{path.name} is not current: make settings"


def test_tier_boosts_are_floats_indexed_by_tier() -> None:
    loaded = load_settings({"memory": {"tier_boosts": {"low": -2}}})
    assert loaded.memory.tier_boosts == (1.0, 0.3, 0.15, 0.0, -2.0)
    assert all(type(boost) is float for boost in loaded.memory.tier_boosts)


def test_importing_config_loads_neither_yaml_nor_jsonschema_nor_numpy() -> None:
    code = (
        "import sys, agents.config.load; "
        "print(*sorted({'yaml', 'jsonschema', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_an_installed_package_reads_the_files_inside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "defaults").mkdir()
    monkeypatch.setattr(packaged, "__file__", str(tmp_path / "config" / "packaged.py"))
    assert packaged.packaged("schema.yaml") == tmp_path / "defaults" / "schema.yaml"


def test_settings_are_frozen() -> None:
    loaded = load_settings()
    with pytest.raises(FrozenInstanceError):
        loaded.seed = 1  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        loaded.memory.max_pinned = 1  # type: ignore[misc]


def test_provider_configs_cannot_be_written_to() -> None:
    loaded = load_settings({"store": {"config": {"path": "here"}}})
    assert isinstance(loaded.store.config, MappingProxyType)
    with pytest.raises(TypeError):
        loaded.store.config["path"] = "there"  # type: ignore[index]


def test_settings_share_nothing_with_the_mapping_they_came_from() -> None:
    config: dict[str, Any] = {"store": {"config": {"hosts": ["a"]}}}
    loaded = load_settings(config)
    config["store"]["config"]["hosts"].append("b")
    assert loaded.store.config["hosts"] == ["a"]


def test_to_dict_shares_nothing_with_the_settings() -> None:
    loaded = load_settings({"store": {"config": {"hosts": ["a"]}}})
    loaded.to_dict()["store"]["config"]["hosts"].append("b")  # type: ignore[index]
    assert loaded.store.config["hosts"] == ["a"]


def test_equal_settings_hash_alike() -> None:
    config = {"store": {"config": {"path": "here"}}}
    assert hash(load_settings(config)) == hash(load_settings(config))


def test_loading_what_to_dict_gives_makes_equal_settings(write: Write) -> None:
    loaded = load_settings(
        {
            "seed": 7,
            "memory": {"tier_boosts": {"pinned": 0.5}, "context_tokens": 100},
            "store": {"provider": "qdrant", "config": {"path": "q", "nested": {"list": [1, None]}}},
        }
    )
    assert load_settings(loaded.to_dict()) == loaded
    assert load_settings(loaded) == loaded
    assert load_settings(write(yaml.safe_dump(loaded.to_dict()))) == loaded


def test_redaction_drops_what_is_named_like_a_secret_at_any_depth() -> None:
    secrets = {"api_key": "s", "authToken": "s", "PASSWORD": "s", "client_secret": "s"}
    plain = {"model": "m", "max_tokens": 5}
    config = {**plain, **secrets, "hosts": [{"credentials": {"user": "s"}, "port": 1}]}
    loaded = load_settings({"llm": {"provider": "openai", "config": config}})
    redacted: Any = loaded.to_dict(redact=True)["llm"]
    assert redacted["config"] == {**plain, "hosts": [{"port": 1}]}
    whole: Any = loaded.to_dict()["llm"]
    assert whole["config"] == config


def test_the_repr_of_settings_shows_no_provider_config() -> None:
    assert "sk-1" not in repr(load_settings({"llm": {"config": {"api_key": "sk-1"}}}))


def test_each_layer_wins_over_the_one_before(write: Write) -> None:
    path = write("memory: {max_pinned: 1, max_critical: 1, default_limit: 1}")
    loaded = load_settings(
        path,
        assignments=["memory.max_critical=2", "memory.default_limit=2"],
        overrides={"memory": {"default_limit": 3}},
    ).memory
    assert loaded.candidate_multiplier == 3
    assert (loaded.max_pinned, loaded.max_critical, loaded.default_limit) == (1, 2, 3)


def test_a_later_assignment_wins() -> None:
    assert load_settings(assignments=["seed=1", "seed=2"]).seed == 2


def test_an_assignment_is_read_as_yaml() -> None:
    loaded = load_settings(
        assignments=[
            "memory.tier_boosts={pinned: 2.0, low: -1}",
            "store.config.url=http://localhost:6333",
            "memory.context_tokens=",
        ]
    )
    assert loaded.memory.tier_boosts == (2.0, 0.3, 0.15, 0.0, -1.0)
    assert loaded.store.config == {"url": "http://localhost:6333"}
    assert loaded.memory.context_tokens is None


def test_overrides_may_nest_or_name_keys_with_dots() -> None:
    loaded = load_settings(
        overrides={
            "memory": {"max_pinned": 1},
            "memory.max_critical": 2,
            "store.config.path": Path("here"),
        }
    )
    assert (loaded.memory.max_pinned, loaded.memory.max_critical) == (1, 2)
    assert loaded.store.config == {"path": "here"}


def test_settings_can_be_the_layer_that_others_change() -> None:
    base = load_settings({"seed": 3, "store": {"config": {"path": "p"}}})
    assert load_settings(base, overrides={"memory.max_pinned": 1}) == replace(
        base, memory=replace(base.memory, max_pinned=1)
    )


def test_provider_config_merges_when_the_provider_stays() -> None:
    loaded = load_settings(
        {"store": {"provider": "qdrant", "config": {"host": "a", "tls": {"on": True}}}},
        overrides={"store": {"provider": "qdrant", "config": {"tls": {"ca": "f"}}}},
    )
    assert loaded.store.config == {"host": "a", "tls": {"on": True, "ca": "f"}}


@pytest.mark.parametrize("section", ["embedder", "store", "llm"])
def test_another_provider_starts_its_config_afresh(section: str) -> None:
    loaded = load_settings(
        {section: {"provider": "one", "config": {"host": "a"}}},
        assignments=[f"{section}.config.port=1", f"{section}.provider=two"],
    )
    assert getattr(loaded, section).provider == "two"
    assert getattr(loaded, section).config == {"port": 1}


@pytest.mark.parametrize("content", ["", "\n", "# nothing yet\n", "---\n", "{}", "\ufeff"])
def test_an_empty_file_changes_nothing(write: Write, content: str) -> None:
    assert load_settings(write(content)) == load_settings()


def test_unknown_key_suggests_the_near_one(write: Write) -> None:
    path = write("seed: 1\nmemory:\n  max_pined: 3\n")
    assert refusal(path) == (
        "my.yaml:3: unknown key memory.max_pined; did you mean memory.max_pinned?"
    )


def test_unknown_key_in_the_wrong_place_suggests_the_right_one() -> None:
    assert "unknown key max_pinned; did you mean memory.max_pinned?" in refusal({"max_pinned": 3})


def test_unknown_key_like_no_other_lists_the_known_ones() -> None:
    assert refusal({"storage": {"zzz": 1}}) == (
        "config mapping: unknown key storage.zzz; known here: sync"
    )


def test_a_dotted_key_in_a_file_is_told_to_nest(write: Write) -> None:
    assert refusal(write("memory.max_pinned: 3")) == (
        "my.yaml:1: unknown key 'memory.max_pinned'; write max_pinned indented under memory"
    )


def test_several_problems_come_in_the_order_of_the_file(write: Write) -> None:
    message = refusal(write("storage: {sync: never}\nseeed: 1\nmemory:\n  max_pinned: -1\n"))
    assert message.splitlines() == [
        "my.yaml:1: storage.sync must be commit, checkpoint, close or manual, not the text 'never'",
        "my.yaml:2: unknown key seeed; did you mean seed?",
        "my.yaml:4: memory.max_pinned must be a whole number, 0 or more, not -1",
    ]


def test_problems_of_all_layers_come_in_one_error(write: Write) -> None:
    message = refusal(write("seed: x"), assignments=["seed=y"], overrides={"seed": "z"})
    assert [line.partition(": seed must be")[0] for line in message.splitlines()] == [
        "my.yaml:1",
        "--set seed=y",
        "keyword argument",
    ]


def test_a_flood_of_problems_is_cut(write: Write) -> None:
    lines = refusal(write("".join(f"k{n}: 1\n" for n in range(50)))).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "and 30 more"


@pytest.mark.parametrize(
    ("key", "written", "allowed", "found"),
    [
        ("seed", "true", "a whole number from 0 to 9223372036854775807", "true"),
        ("seed", "false", "a whole number from 0 to 9223372036854775807", "false"),
        ("seed", "3.0", "a whole number from 0 to 9223372036854775807", "3.0"),
        ("seed", "9223372036854775808", "a whole number from 0 to", "9223372036854775808"),
        ("memory.max_pinned", "'3'", "a whole number, 0 or more", "the text '3'"),
        ("memory.max_critical", "[1]", "a whole number, 0 or more", "a list"),
        ("memory.max_pinned", "", "a whole number, 0 or more", "null (nothing is written there)"),
        ("memory.on_tier_full", "no", "demote or reject", "false, which is how YAML reads no"),
        ("memory.tier_boosts.low", "11", "a number from -10 to 10", "11"),
        ("memory.tier_boosts.low", "1e999", "a number from -10 to 10", "the text '1e999'"),
        ("memory.tier_boosts.low", "5e-1", "a number", "YAML wants a dot and a sign"),
        ("memory.tier_boosts.low", ".inf", "a finite number", ".inf"),
        ("memory.tier_boosts.low", "-.inf", "a finite number", "-.inf"),
        ("memory.tier_boosts.low", ".nan", "a finite number", ".nan"),
        ("memory.tier_boosts.low", "1.0e+999", "a finite number", "1.0e+999"),
        ("memory.tier_boosts", "3", "a mapping of keys", "3"),
        ("memory.candidate_multiplier", "0", "a whole number from 1 to 1000", "0"),
        ("memory.candidate_multiplier", "1001", "a whole number from 1 to 1000", "1001"),
        ("memory.default_limit", "10001", "a whole number from 0 to 10000", "10001"),
        ("memory.context_tokens", "0", "a whole number, 1 or more, or null", "0"),
        ("memory.max_content_bytes", "0", "a whole number from 1 to 1048576", "0"),
        ("memory.max_content_bytes", "1048577", "a whole number from 1 to 1048576", "1048577"),
        ("embedder.provider", "''", "text that is not empty", "an empty text"),
        ("embedder.provider", "null", "text that is not empty", "null"),
        ("embedder.cache_size", "-1", "a whole number, 0 or more", "-1"),
        ("store.config", "[]", "a mapping of keys", "a list"),
        ("storage.sync", "off", "commit, checkpoint, close or manual", "false"),
        ("simulation.ticks", "0", "a whole number from 1 to 1000000000", "0"),
        ("simulation.ticks", "1000000001", "a whole number from 1 to 1000000000", "1000000001"),
        ("llm.provider", "3", "text that is not empty, or null", "3"),
        ("llm.config.temperature", ".nan", "a finite number", ".nan"),
        ("llm.config.n", "0x" + "f" * 90, "a whole number of at most 256 bits", "0xfff"),
        ("llm.config.n", "9" * 5000, "a shorter number", ""),
    ],
)
def test_a_bad_value_is_told_what_was_read_and_what_is_allowed(
    write: Write, key: str, written: str, allowed: str, found: str
) -> None:
    *sections, name = key.split(".")
    text = "".join(f"{'  ' * depth}{section}:\n" for depth, section in enumerate(sections))
    path = write(f"{text}{'  ' * len(sections)}{name}: {written}\n")
    message = refusal(path)
    assert message.startswith(f"my.yaml:{len(sections) + 1}: {key} must be {allowed}")
    assert found in message.partition(allowed)[2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- a\n", "my.yaml:1: settings must be a mapping of keys, not a list"),
        ("hello\n", "my.yaml:1: settings must be a mapping of keys, not the text 'hello'"),
        ("memory:\n", "my.yaml:1: memory must be a mapping of keys, not null"),
        ("seed: 1\n---\nseed: 2\n", "my.yaml:2: a second YAML document starts here"),
        ("seed: [1\n", "my.yaml:2: not valid YAML: while parsing a flow sequence"),
        ("a: b: c\n", "my.yaml:1: not valid YAML: mapping values are not allowed here"),
        ("seed: *x\n", "my.yaml:1: *x is an alias; write what it stands for out"),
        ('seed: "\\UFFFFFFFF"\n', "my.yaml:1: not valid YAML: an escape or a version number"),
        ("%YAML 1." + "9" * 5000 + "\n---\n", "my.yaml:1: not valid YAML: an escape or a version"),
        ("seed: 1\n\x07", "my.yaml:2: not valid YAML: the character 0x7 is not allowed"),
        ("1: 2\n", "my.yaml:1: in the top level, YAML does not read the key 1 as text"),
        ("memory:\n  on: 2\n", "my.yaml:2: in memory, YAML does not read the key on as text"),
        ("? [a]\n: 2\n", "my.yaml:1: a key in the top level is a list or a mapping, not text"),
        ("<<: {seed: 1}\n", "my.yaml:1: merge keys (<<) are not read"),
        ("seed: !!int abc\n", "my.yaml:1: seed: 'abc' is not a YAML int"),
        ("seed: !!bool abc\n", "my.yaml:1: seed: 'abc' is not a YAML bool"),
        ("seed: !!set {a}\n", "my.yaml:1: seed has the tag !!set; settings are plain text"),
        ('llm: {config: {a: "\\ud800"}}', "my.yaml:1: llm.config.a must be text that UTF-8"),
    ],
)
def test_yaml_that_is_no_settings_file_is_refused(write: Write, content: str, message: str) -> None:
    assert refusal(write(content)).startswith(message)


@pytest.mark.parametrize(
    "value", ["!!python/object/apply:os.system ['true']", "!!python/name:os.system ''"]
)
def test_python_tags_are_refused_and_run_nothing(write: Write, value: str) -> None:
    message = refusal(write(f"store:\n  config:\n    a: {value}\n"))
    assert message.startswith("my.yaml:3: store.config.a has the tag !!python/")


def test_a_duplicate_key_names_both_lines(write: Write) -> None:
    path = write("memory:\n  max_pinned: 1\n  max_critical: 2\n  max_pinned: 3\n")
    assert refusal(path) == (
        "my.yaml:4: memory.max_pinned is given twice; the first is on line 2; keep one of them"
    )


def test_a_date_in_a_provider_config_stays_text(write: Write) -> None:
    path = write("llm: {config: {api_version: 2024-02-01, odd: 2024-99-99}}")
    assert load_settings(path).llm.config == {"api_version": "2024-02-01", "odd": "2024-99-99"}


def test_an_alias_is_refused(write: Write) -> None:
    path = write("embedder: {config: &shared {a: [1]}}\nllm: {config: *shared}\n")
    assert refusal(path) == "my.yaml:2: *shared is an alias; write what it stands for out"


def test_an_anchor_without_an_alias_says_nothing(write: Write) -> None:
    assert load_settings(write("llm: {config: &shared {a: [1]}}\n")).llm.config == {"a": [1]}


def test_an_alias_bomb_is_refused_before_it_expands(write: Write) -> None:
    bomb = "store:\n  config:\n    a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for n in range(1, 30):
        bomb += f"    a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n"
    assert refusal(write(bomb)).startswith("my.yaml:4: *a0 is an alias")


def test_an_alias_to_itself_is_refused(write: Write) -> None:
    message = refusal(write("store: &loop\n  config: {again: *loop}\n"))
    assert message.startswith("my.yaml:2: *loop is an alias")


def test_what_stands_in_two_places_is_written_out_twice() -> None:
    shared = {"a": [1]}
    written = to_yaml({"llm": shared, "store": [shared, shared["a"]]})
    assert "&" not in written
    assert yaml.safe_load(written) == {"llm": {"a": [1]}, "store": [{"a": [1]}, [1]]}


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "[{a: "])
def test_deep_nesting_is_refused(write: Write, opening: str) -> None:
    assert refusal(write(opening * 20_000)) == "my.yaml:1: nested deeper than 32 levels"


def test_too_many_values_are_refused(write: Write) -> None:
    content = "store:\n  config:\n    a:\n" + "    - 1\n" * 10_000
    assert "more than 10,000 values" in refusal(write(content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"seed: 1\nllm: \xe9\n", "my.yaml:2: not UTF-8 (byte 0xe9); save the file as UTF-8"),
        ("seed: 1\n".encode("utf-16-le"), "my.yaml:1: holds a NUL byte"),
        (b"seed: 1\n\0", "my.yaml:2: holds a NUL byte"),
        (b"#" * (2**20 + 1), "my.yaml: larger than 1 MiB"),
    ],
)
def test_a_file_that_is_no_small_text_is_refused(
    write: Write, content: bytes, message: str
) -> None:
    assert refusal(write(content)).startswith(message)


def test_a_missing_file_is_named_as_given() -> None:
    said = "no/such.yaml: there is no such file; check the path"
    assert refusal("no/such.yaml") == refusal(Path("no/such.yaml")) == said


def test_a_directory_is_no_settings_file(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path}: this is a directory; name a YAML file"


def test_a_file_without_permission_is_refused(write: Write) -> None:
    path = write("seed: 1")
    os.chmod(path, 0)
    load_settings()  # the packaged files must be read while we still may
    if root := os.geteuid() == 0:
        os.seteuid(65534)  # root may read everything
    try:
        assert refusal(path) == "my.yaml: no permission to read this file; let your user read it"
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5000, "\udcff.yaml"])
def test_a_path_that_cannot_be_opened_is_refused(path: str) -> None:
    refusal(path).encode("utf-8")


@pytest.mark.parametrize("config", [3, b"my.yaml", ["seed"], object()])
def test_config_of_another_type_is_refused(config: object) -> None:
    assert refusal(config).startswith("config must be a path, a mapping, Settings or None, not ")


@pytest.mark.parametrize("assignment", ["memory.max_pinned", "=3", "memory..max_pinned=3", ""])
def test_an_assignment_needs_a_key_and_an_equals_sign(assignment: str) -> None:
    assert refusal(assignments=[assignment]) == (
        f"--set {assignment}: this is not a setting with its value; "
        "write a key, = and a value, as in memory.max_pinned=3"
    )


def test_a_bad_assignment_is_named() -> None:
    assert refusal(assignments=["memory.max_pinned=x"]) == (
        "--set memory.max_pinned=x: memory.max_pinned must be a whole number, 0 or more,"
        " not the text 'x'"
    )


@pytest.mark.parametrize("assignment", ["llm.config.api_key=[sk-1", "llm.config={api_key: [sk-1}"])
def test_a_bad_assignment_does_not_show_a_secret(assignment: str) -> None:
    message = refusal(assignments=[assignment])
    assert message.startswith("--set llm.config")
    assert "sk-1" not in message


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"memory.max_pinned": "x"}, "memory.max_pinned must be a whole number, 0 or more, not"),
        ({"seed": 10**5000}, "seed must be a whole number of at most 256 bits"),
        ({"seed": float("nan")}, "seed must be a finite number"),
        ({"store.config": {"client": object()}}, "store.config.client is an object of type object"),
        ({"memory": {1: 2}}, "memory has a key that is not text: 1"),
        ({1: 2}, "the top level has a key that is not text: 1"),
        ({"store.config" + ".a" * 5000: 1}, "store.config.a is nested deeper than 32 levels"),
        ([1], "overrides must be a mapping, not list"),
    ],
)
def test_a_bad_override_is_named(overrides: Any, message: str) -> None:
    assert refusal(overrides=overrides).startswith(f"keyword argument: {message}")


def test_a_mapping_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.extend([loop, loop])
    assert "deeper than 32 levels" in refusal({"store": {"config": {"loop": loop}}})


def test_numbers_of_other_libraries_are_taken_as_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    loaded = load_settings(overrides={"seed": numpy.int64(3), "memory.tier_boosts.low": -0.5})
    assert loaded.seed == 3
    assert type(loaded.seed) is int


def only_settings_or_config_error(*args: Any, **kwargs: Any) -> None:
    try:
        loaded = load_settings(*args, **kwargs)
    except ConfigError as error:
        str(error).encode("utf-8")
    else:
        assert isinstance(loaded, Settings)
        assert load_settings(loaded.to_dict()) == loaded


PIECES = [
    *"[]{},:&*!|>-?#%@'\"\n\t ~=<.",
    *[
        "\n  ",
        ": ",
        "- ",
        "? ",
        "---\n",
        "...\n",
        "&a ",
        "*a",
        "<<: ",
        "!!int ",
        "!!float ",
        "!!map ",
    ],
    *[
        "!!python/name:x ",
        "!<tag> ",
        "%YAML 1.2\n",
        "%TAG ! x\n",
        '"\\u',
        '"\\xd8"',
        "\ufeff",
        "\x85",
    ],
    *["seed", "memory", "max_pinned", "tier_boosts", "store", "config", "llm", "provider"],
    *["1", "0x", "-1.5", ".inf", "1:2", "null", "yes", "2024-01-01", "1e5", "é", "\u2028"],
]
KEYS = st.sampled_from(sorted({part for key in schema_keys(SCHEMA) for part in key.split(".")}))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | SCALARS, inner, max_size=4),
    max_leaves=12,
)
# The file is written anew for every example, so sharing the folder between them is safe.
sharing = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@sharing
@given(content=st.binary(max_size=60))
def test_any_bytes_give_settings_or_a_config_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any.yaml"
    path.write_bytes(content)
    only_settings_or_config_error(path)


@settings(sharing, max_examples=examples(300))
@given(content=st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=25).map("".join))
def test_any_text_gives_settings_or_a_config_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "any.yaml"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    only_settings_or_config_error(path)


@sharing
@given(value=VALUES)
def test_any_yaml_value_gives_settings_or_a_config_error(tmp_path: Path, value: object) -> None:
    path = tmp_path / "any.yaml"
    path.write_text(yaml.safe_dump(value), encoding="utf-8", errors="surrogatepass")
    only_settings_or_config_error(path)


@sharing
@given(config=st.dictionaries(KEYS | st.text(), VALUES, max_size=4))
def test_any_mapping_gives_settings_or_a_config_error(config: dict[str, object]) -> None:
    only_settings_or_config_error(config)
    only_settings_or_config_error(overrides=config)


@pytest.mark.parametrize(
    ("assignment", "allowed"),
    [
        ("retrieval.generative.decay=2", "a number above 0 and at most 1, not 2"),
        ("reflection.threshold=", "a number above 0 and at most 1000000, not null"),
        ("store.timeout=0", "a number above 0, not 0"),
    ],
)
def test_the_bounds_of_a_number_are_told(assignment: str, allowed: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"must be {allowed}")):
        load_settings(assignments=[assignment])


@sharing
@given(key=st.sampled_from(sorted(schema_keys(SCHEMA))) | st.text(), value=st.text())
def test_any_assignment_gives_settings_or_a_config_error(key: str, value: str) -> None:
    only_settings_or_config_error(assignments=[f"{key}={value}"])


@given(
    seed=st.integers(0, 2**63 - 1),
    boost=st.floats(-10, 10),
    config=st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers(), max_size=3),
)
def test_every_valid_value_survives_the_round_trip(
    seed: int, boost: float, config: dict[str, int]
) -> None:
    loaded = load_settings(
        {"seed": seed, "memory": {"tier_boosts": {"low": boost}}, "llm": {"config": config}}
    )
    assert (loaded.seed, loaded.memory.tier_boosts[4], loaded.llm.config) == (seed, boost, config)
    assert load_settings(loaded.to_dict()) == loaded
