"""What the language model of Mesa-LLM's agents said, in a cassette: recorded, and replayed."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...simulation.policies.cassette import Cassette, Exchange, hash_prompt
from ..names import agent_id_of


def record(agents: Iterable[Any], path: str | Path, *, replay: bool = False) -> None:
    """Let agents keep every answer of their language model in the file ``path``.

    A question that the file has an answer to is not asked again: a model that was stopped goes on
    without paying twice. With ``replay``, the file is not changed, nobody is asked, and a question
    that was not recorded is :class:`Diverged`. Agents that are made later need a call of their own.
    """
    cassette = Cassette(path, replay)
    for agent in agents:
        _Recorder(agent, cassette)


class _Recorder:
    """Stands between an agent and its ``ModuleLLM``."""

    def __init__(self, agent: Any, cassette: Cassette) -> None:
        self._agent = agent
        self._llm = agent.llm
        self._cassette = cassette
        self._asked: Counter[tuple[int, str]] = Counter()
        """How often a question was asked in a step."""
        self._generate, self._agenerate = self._llm.generate, self._llm.agenerate
        self._llm.generate, self._llm.agenerate = self.generate, self.agenerate

    def generate(self, *args: Any, **options: Any) -> Any:
        """``ModuleLLM.generate``: from the cassette, or from the model."""
        question = self._question(args, options)
        answer = self._found(question)
        return self._kept(question, self._generate(*args, **options)) if answer is None else answer

    async def agenerate(self, *args: Any, **options: Any) -> Any:
        """``ModuleLLM.agenerate``, likewise."""
        question = self._question(args, options)
        answer = self._found(question)
        if answer is None:
            return self._kept(question, await self._agenerate(*args, **options))
        return answer

    def _question(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> Exchange:
        """The question, and how often it was asked in this step before."""
        names = ("prompt", "tool_schema", "tool_choice", "response_format", "system_prompt")
        request = {**dict(zip(names, args, strict=False)), **options}
        request.setdefault("system_prompt", None)
        if request["system_prompt"] is None:
            request["system_prompt"] = self._llm.system_prompt
        text = json.dumps(request, sort_keys=True, default=_schema, ensure_ascii=False)
        messages = [{"model": self._llm.llm_model, "request": text}]
        step = self._agent.model.steps
        place = (step, hash_prompt(messages))
        attempt = self._asked[place]
        self._asked[place] += 1
        return Exchange(step, agent_id_of(str(self._agent.unique_id)), attempt, messages)

    def _found(self, question: Exchange) -> Any:
        found = self._cassette.find(*question.key)
        if found is None or found.reply is None:
            return None
        from litellm import ModelResponse

        return ModelResponse(**json.loads(found.reply))

    def _kept(self, question: Exchange, answer: Any) -> Any:
        self._cassette.record(question._replace(reply=answer.model_dump_json()))
        return answer


def _schema(value: Any) -> object:
    """A class of pydantic, as which the format of an answer may be given, by its schema."""
    make = getattr(value, "model_json_schema", None)
    return make() if callable(make) else type(value).__qualname__
