"""What is said where a package is missing."""

import pytest

from tiermem import ConfigError
from tiermem.errors import NotInstalled
from tiermem.packages import missing, needed


@pytest.mark.parametrize(
    ("module", "package", "todo"),
    [
        ("agentsociety2.agent", "agentsociety2", "pip install 'tiermem[agent-society]'"),
        ("camel.memories", "camel-ai", "pip install 'tiermem[camel]'"),
        ("concordia", "gdm-concordia", "pip install 'tiermem[concordia]'"),
        ("google.adk.events", "google-adk", "pip install 'tiermem[google-adk]'"),
        ("langchain_core.stores", "langgraph", "pip install 'tiermem[langgraph]'"),
        ("llama_index", "llama-index-core", "pip install 'tiermem[llama-index]'"),
        ("mesa_llm", "mesa-llm", "pip install 'tiermem[mesa-llm]'"),
        ("networkx", "networkx", "pip install 'tiermem[networks]'"),
        ("oasis.social_agent", "camel-oasis", "pip install 'tiermem[oasis]'"),
        ("pydantic_ai", "pydantic-ai-slim", "pip install 'tiermem[pydantic-ai]'"),
        ("ray", "ray", "pip install 'tiermem[ray]'"),
    ],
)
def test_the_error_names_the_package_and_the_extra_that_brings_it(
    module: str, package: str, todo: str
) -> None:
    error = missing("it", module)
    assert error.why == f"it needs the package {package}, which is not installed"
    assert error.hint == todo


def test_a_missing_module_is_an_error_of_imports_and_of_the_configuration() -> None:
    with (
        pytest.raises(
            NotInstalled, match=r"it needs the package absent.*; or go without"
        ) as caught,
        needed("it", "absent", otherwise="; or go without"),
    ):
        import absent.inside  # type: ignore[import-not-found]  # noqa: F401
    assert isinstance(caught.value, ConfigError)
    assert isinstance(caught.value, ImportError)
    assert caught.value.name == "absent"


def test_what_a_needed_package_lacks_itself_is_told_by_python() -> None:
    with pytest.raises(ModuleNotFoundError, match="'absent'"), needed("it", "other"):
        import absent  # type: ignore[import-not-found]  # noqa: F401
