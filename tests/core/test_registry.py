"""A registry is a folder; an entry is a file of it, or a sub-folder with such a file."""

import importlib
import sys
from importlib.metadata import EntryPoint

import pytest

from neural.core.registry import Registry, UnknownNameError
from neural.exports import registry as exports
from neural.imports import registry as imports
from neural.tasks import registry as tasks


class Tool:
    """Base class of the entries in these tests."""


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A package with three entries, one of them a sub-folder, and files that are no entries."""
    folder = tmp_path / "toolbox"
    (folder / "two_handed_saw").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    base = f"from {Tool.__module__} import Tool\n"
    monkeypatch.setitem(sys.modules, Tool.__module__, sys.modules[Tool.__module__])
    (folder / "hammer.py").write_text(base + "class Hammer(Tool): pass\nclass Other(Tool): pass\n")
    (folder / "drill2d.py").write_text(base + "class Drill2D(Tool): pass\n")
    (folder / "two_handed_saw" / "__init__.py").write_text("")
    (folder / "two_handed_saw" / "tool.py").write_text(base + "class TwoHandedSaw(Tool): pass\n")
    (folder / "_screws.py").write_text("raise RuntimeError('shared helpers are no entries')")
    (folder / "manuals").mkdir()
    (folder / "manuals" / "__init__.py").write_text("raise RuntimeError('no entry: no tool.py')")
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__("toolbox")
    yield Registry("toolbox", Tool, noun="tool")
    for name in [module for module in sys.modules if module.split(".")[0] == "toolbox"]:
        del sys.modules[name]


def test_names_are_those_of_the_folder(tools):
    assert tools.names() == ["Drill2D", "Hammer", "TwoHandedSaw"]


def test_a_sub_folder_is_an_entry_if_it_has_a_file_named_by_the_noun(tools):
    assert tools.get("TwoHandedSaw").__module__ == "toolbox.two_handed_saw.tool"
    assert tools.guess("manual") is None
    with pytest.raises(UnknownNameError):
        tools.get("Manuals")


def test_the_file_of_the_base_class_is_no_entry(tmp_path, monkeypatch):
    folder = tmp_path / "shed"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "tool.py").write_text("class Tool: pass\n")
    (folder / "rake.py").write_text("from shed.tool import Tool\nclass Rake(Tool): pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    base = importlib.import_module("shed.tool").Tool
    try:
        assert Registry("shed", base, noun="tool").names() == ["Rake"]
    finally:
        for name in ("shed", "shed.tool", "shed.rake"):
            sys.modules.pop(name, None)


def test_an_entry_is_found_by_its_exact_name(tools):
    assert tools.get("TwoHandedSaw").__name__ == "TwoHandedSaw"
    assert tools.get("Hammer") is tools.get("Hammer")


@pytest.mark.parametrize("typed", ["hammer", "HAMMER", "two_handed_saw", "drill2d"])
def test_another_spelling_is_found_ignoring_case_and_otherwise_guessed(tools, typed):
    entry = tools.get(typed, ignore_case=True)
    with pytest.raises(UnknownNameError) as caught:
        tools.get(typed)
    assert caught.value.guess == entry.__name__


def test_an_unknown_name_is_reported_with_the_closest_one(tools):
    with pytest.raises(
        UnknownNameError, match=r"no tool is called `Hamer`; did you mean `Hammer`\?"
    ) as caught:
        tools.get("Hamer")
    assert (caught.value.noun, caught.value.name, caught.value.guess) == ("tool", "Hamer", "Hammer")
    with pytest.raises(
        UnknownNameError, match=r"no tool is called `Zzz`; there are Drill2D, Hammer, TwoHandedSaw$"
    ):
        tools.get("Zzz")


def test_an_alias_that_an_entry_declares_is_its_name_too(tools, monkeypatch):
    hammer = tools.get("Hammer")
    monkeypatch.setattr(hammer, "aliases", ("claw_hammer",), raising=False)
    with pytest.raises(UnknownNameError):
        tools.get("claw_hammer")
    monkeypatch.setattr(Tool, "aliases", (), raising=False)
    assert tools.get("claw_hammer") is tools.get("Claw-Hammer") is hammer
    assert tools.name_of(tools.get("claw_hammer")) == "Hammer"
    assert "claw_hammer" not in tools.names()


@pytest.mark.parametrize("registry", [tasks, exports, imports], ids=lambda registry: registry.noun)
def test_no_alias_is_a_name_or_the_alias_of_two_entries(registry):
    aliases = [alias for name in registry.names() for alias in registry.get(name).aliases]
    assert len({*aliases, *registry.names()}) == len(aliases) + len(registry.names())
    for name in registry.names():
        assert all(
            registry.get(alias) is registry.get(name) for alias in registry.get(name).aliases
        )


def test_only_the_requested_entry_is_imported(tools):
    tools.get("Hammer")
    assert "toolbox.hammer" in sys.modules
    assert "toolbox.drill2d" not in sys.modules


def test_a_registry_may_spell_names_as_files_do(tools):
    files = Registry("toolbox", Tool, noun="tool", spelling="file")
    assert files.names() == ["drill2d", "hammer", "two_handed_saw"]
    assert files.get("two_handed_saw").__name__ == "TwoHandedSaw"
    with pytest.raises(UnknownNameError, match="did you mean `two_handed_saw`"):
        files.get("TwoHandedSaw")


def test_an_entry_can_be_added_in_a_notebook(tools):
    class Wrench(Tool):
        pass

    assert tools.add(Wrench) is Wrench
    assert tools.get("Wrench") is Wrench
    assert "Wrench" in tools.names()
    assert tools.guess("wrensh") == "Wrench"


def test_an_added_entry_replaces_the_one_of_the_folder(tools):
    tools.get("Hammer")

    class Hammer(Tool):
        pass

    tools.add(Hammer)
    assert tools.get("Hammer") is Hammer
    assert tools.names().count("Hammer") == 1


@pytest.mark.parametrize("junk", [int, "Hammer", None, Tool()])
def test_only_subclasses_of_the_base_can_be_added(tools, junk):
    with pytest.raises(TypeError, match="a tool must be a subclass of Tool"):
        tools.add(junk)


def test_restrict_to_gives_a_fixed_catalogue(tools):
    restricted = tools.restrict_to(["Hammer", "drill2d"])
    assert restricted.names() == ["Drill2D", "Hammer"]
    assert restricted.get("Hammer") is tools.get("Hammer")
    assert restricted.guess("TwoHandedSaws") is None
    with pytest.raises(UnknownNameError):
        restricted.get("TwoHandedSaw")
    assert "TwoHandedSaw" in tools.names(), "the registry itself is unchanged"


def test_entries_come_from_other_packages_through_entry_points(tools, monkeypatch, tmp_path):
    (tmp_path / "elsewhere.py").write_text(
        f"from {Tool.__module__} import Tool\nclass Wrench(Tool): pass\n"
    )
    point = EntryPoint("wrench", "elsewhere:Wrench", "toolbox")
    groups = []
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda *, group: groups.append(group) or [point]
    )
    assert tools.get("Wrench").__name__ == "Wrench"
    assert "Wrench" in tools.names()
    assert set(groups) == {"toolbox"}
    sys.modules.pop("elsewhere", None)


def test_an_entry_point_cannot_take_the_name_of_an_own_entry(tools, monkeypatch, tmp_path):
    """Nor is its package imported for that name."""
    (tmp_path / "elsewhere.py").write_text("raise RuntimeError('imported')\n")
    point = EntryPoint("hammer", "elsewhere:Hammer", "toolbox")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: [point])
    assert tools.get("Hammer").__module__ == "toolbox.hammer"
    assert "Hammer" in tools.names()
    assert "elsewhere" not in sys.modules


def test_a_file_without_its_class_is_a_clear_error(tools, tmp_path):
    (tmp_path / "toolbox" / "chisel.py").write_text("class Something: pass\n")
    with pytest.raises(ImportError, match=r"toolbox.chisel must define a Tool named like the file"):
        tools.get("Chisel")


def test_a_class_of_the_right_name_and_the_wrong_kind_is_a_clear_error(tools, tmp_path):
    (tmp_path / "toolbox" / "chisel.py").write_text("class Chisel: pass\n")
    with pytest.raises(ImportError, match="must define a Tool"):
        tools.get("Chisel")
