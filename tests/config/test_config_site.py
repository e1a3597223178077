"""Sites: overlays, shadows, and what they may not do."""

import pytest
from place_toys import PlaceBench, PlaceMill, PlaceOther, PlaceRun

from t1x.config import ConfigError, dump, load
from t1x.config.digest import study_digest
from t1x.config.site import default_site, find_site, sites

RUN = """import place_toys
include 'registry/goods/pears.gin'
PlaceRun.goods = @PlaceCrate()
PlaceRun.method = 'fast'
"""
PEARS = "PlaceCrate.label = 'pears'\nPlaceCrate.size = 5000\n"


@pytest.fixture
def project(write):
    write("registry/goods/pears.gin", PEARS)
    write("registry/sites/mill/site.gin", "PlaceBase.machine = @PlaceMill()\n")
    write("registry/sites/hut/site.gin", "")
    write("registry/sites/hut/goods/pears.gin", "include 'registry/goods/pears.gin'\nPlaceCrate.size = 5\n")
    write("run.gin", RUN)
    return write


def setting_problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load("run.gin", site="hut", set=[text])
    return [str(problem) for problem in caught.value.problems]


def problems(site: str, file: str = "run.gin") -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(file, site=site)
    return [str(problem) for problem in caught.value.problems]


def test_an_overlay_wins_over_the_file_and_a_setting_over_both(project):
    project("run.gin", RUN + "PlaceRun.machine = @PlaceBench()\nPlaceRun.batch = 4\n")
    project("registry/sites/mill/site.gin", "PlaceBase.machine = @PlaceMill()\nPlaceRun.batch = 2\n")
    assert load("run.gin").root.batch == 4
    on_site = load("run.gin", site="mill")
    assert (on_site.root.batch, on_site.root.machine) == (2, PlaceMill())
    assert str(on_site.origins["PlaceRun.batch"]) == "registry/sites/mill/site.gin:2"
    assert on_site.notes == (
        "run.gin:5 sets PlaceRun.machine, and so does the site at registry/sites/mill/site.gin:1, which wins; --set wins over both",
        "run.gin:6 sets PlaceRun.batch, and so does the site at registry/sites/mill/site.gin:2, which wins; --set wins over both",
    )
    assert load("run.gin", site="mill", set=["PlaceRun.batch = 1"]).root.batch == 1


def test_the_tree_says_where_it_is(project):
    assert load("run.gin").root.site is None
    resolved = load("run.gin", site="hut")
    assert resolved.root.site == "hut"
    assert str(resolved.origins["PlaceRun.site"]) == "registry/sites/hut/site.gin"


def test_a_shadow_is_read_in_place_of_what_is_included_and_includes_it(project):
    crate = load("run.gin", site="hut").root.goods
    assert (crate.label, crate.size) == ("pears", 5)
    assert load("run.gin", site="mill").root.goods.size == 5000


def test_a_site_builds_on_another(project):
    project("registry/sites/attic/site.gin", "include 'registry/sites/hut/site.gin'\nPlaceRun.batch = 1\n")
    assert load("run.gin", site="attic").root.goods.size == 5
    project("registry/sites/attic/goods/pears.gin", "include 'registry/goods/pears.gin'\nPlaceCrate.size = 2 \n")
    project("registry/sites/hut/goods/pears.gin", "include 'registry/goods/pears.gin'\nPlaceCrate.where = 'hut'\n")
    resolved = load("run.gin", site="attic").root
    assert (resolved.goods.size, str(resolved.goods.where), resolved.goods.label, resolved.batch) == (2, "hut", "pears", 1)


def test_what_a_site_says_for_other_experiments_is_no_mistake(project):
    project(
        "registry/sites/mill/site.gin", "N = 3\nPlaceBase.machine = @PlaceMill()\nPlaceOther.depth = %N\nx/PlaceCrate.size = 1\n"
    )
    assert load("run.gin", site="mill").root.machine == PlaceMill()
    project("other.gin", "import place_toys\nPlaceOther.machine = @PlaceBench()\n")
    assert isinstance(load("other.gin", site="hut").root, PlaceOther)


def test_names_in_a_site_are_checked(project):
    project("registry/sites/mill/site.gin", "PlaceBase.machin = @PlaceMill()\n")
    (problem,) = problems("mill")
    assert problem == "registry/sites/mill/site.gin:1: PlaceBase has no field machin; did you mean 'machine'?"


def test_a_site_may_not_set_what_is_studied(project):
    project("registry/sites/mill/site.gin", "PlaceRun.method = 'slow'\nPlaceCrate.label = 'plums'\nPlaceRun.seed = 3\n")
    found = problems("mill")
    assert [problem.partition(" is no size and no place")[0] for problem in found] == [
        "registry/sites/mill/site.gin:1: PlaceRun.method",
        "registry/sites/mill/site.gin:2: PlaceRun.goods.label",
        "registry/sites/mill/site.gin:3: PlaceRun.seed",
    ]
    assert "set it in the experiment" in found[0]


def test_below_a_place_everything_is_one(project):
    project("registry/sites/mill/site.gin", "PlaceBase.machine = @PlaceMill()\nPlaceMill.precision = 'double'\n")
    assert load("run.gin", site="mill").root.machine.precision == "double"


def test_a_shadow_may_not_drop_what_is_studied(project):
    project("registry/sites/hut/goods/pears.gin", "PlaceCrate.size = 5\n")
    (problem,) = problems("hut")
    assert problem == (
        "registry/goods/pears.gin:1: the site changes PlaceRun.goods.label from 'pears' to 'apples'; "
        "its shadow of this file must include it"
    )


def test_what_a_registry_file_says_for_a_component_that_the_site_replaces_is_no_mistake(project):
    project("registry/goods/pears.gin", PEARS + "PlaceBench.cores = 8\n")
    assert load("run.gin", site="mill").notes == ()
    project("run.gin", RUN + "PlaceBench.cores = 9\n")
    (note,) = load("run.gin", site="mill").notes
    assert note.startswith("run.gin:5 sets PlaceBench.cores, which isn't used")


def test_sites_study_the_same(project):
    digests = {study_digest(load("run.gin", site=site).root) for site in (None, "hut", "mill")}
    assert len(digests) == 1


def test_a_resolved_file_takes_no_site(project):
    resolved = load("run.gin", site="hut", set=["PlaceRun.machine = @PlaceMill()"]).root
    project("resolved.gin", dump(resolved))
    for site in (None, "auto", "hut"):
        assert load("resolved.gin", site=site).root == resolved
    (problem,) = problems("mill", "resolved.gin")
    assert "resolved for the site 'hut'; load what it was made from to have it on 'mill'" in problem


def test_an_unknown_site_names_those_there_are(project):
    with pytest.raises(ValueError, match=r"there is no site 'hutt'; did you mean 'hut'\?"):
        load("run.gin", site="hutt")
    with pytest.raises(ValueError, match=r"there are .*cluster, hut, laptop, mill"):
        load("run.gin", site="qzxv")
    assert {"hut", "mill", "laptop", "cluster"} <= set(sites())


def test_a_site_in_the_project_wins_over_one_of_the_package(project):
    assert find_site("laptop").overlay.parent.name == "laptop"
    project("registry/sites/laptop/site.gin", "PlaceRun.batch = 7\n")
    assert load("run.gin", site="laptop").root.batch == 7


def test_the_default_site_follows_the_devices(project, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert default_site() == "laptop"
    assert load("run.gin", site="auto").root.site == "laptop"


def test_a_base_class_binds_whichever_root_a_file_describes(project):
    project("run.gin", RUN + "PlaceBase.machine = @PlaceMill()\n")
    assert isinstance(load("run.gin").root, PlaceRun)
    assert load("run.gin").root.machine == PlaceMill()
    last = load("run.gin", set=["PlaceRun.machine = @PlaceBench()", "PlaceBase.machine = @PlaceMill()"])
    assert last.root.machine == PlaceMill()
    last = load("run.gin", set=["PlaceBase.machine = @PlaceMill()", "PlaceRun.machine = @PlaceBench()"])
    assert last.root.machine == PlaceBench()


def test_a_setting_may_include(project):
    project("registry/goods/plums.gin", "PlaceCrate.label = 'plums'\nPlaceCrate.size = 7\n")
    project("registry/sites/hut/goods/plums.gin", "include 'registry/goods/plums.gin'\nPlaceCrate.size = 1\n")
    crate = load("run.gin", site="hut", set=["include 'registry/goods/plums.gin'"]).root.goods
    assert (crate.label, crate.size) == ("plums", 1)


def test_a_site_is_chosen_not_set(project):
    (problem,) = setting_problems("PlaceBase.site = 'mill'")
    assert problem == """--set "PlaceBase.site = 'mill'": PlaceBase.site isn't set but chosen: --site mill"""
    project("registry/sites/hut/site.gin", "PlaceRun.site = 'mill'\n")
    assert problems("hut") == ["registry/sites/hut/site.gin:1: PlaceRun.site isn't set but chosen: --site mill"]


def test_a_file_that_includes_a_resolved_one_is_resolved(project):
    project("resolved.gin", dump(load("run.gin", site="mill").root))
    project("again.gin", "include 'resolved.gin'\nPlaceRun.batch = 2\n")
    again = load("again.gin", site="auto").root
    assert (again.site, again.machine, again.batch) == ("mill", PlaceMill(), 2)
    (problem,) = problems("hut", "again.gin")
    assert "this file is resolved for the site 'mill'" in problem


def test_a_site_has_one_name(project):
    with pytest.raises(ValueError, match=r"there is no site 'hut/\.\./mill'"):
        load("run.gin", site="hut/../mill")


def test_what_a_site_does_to_a_list_is_one_problem_with_its_place(project):
    project("run.gin", RUN + "PlaceRun.more = {'a': @PlaceCrate(), 'b': @PlaceCrate()}\n")
    project("registry/sites/mill/site.gin", "PlaceRun.more = {'a': @PlaceCrate()}\n")
    (problem,) = problems("mill")
    assert problem.startswith("registry/sites/mill/site.gin:1: PlaceRun.more is no size and no place")


@pytest.mark.parametrize("name", ["../registry/goods/pears.gin", "{}/registry/goods/pears.gin", "./registry/goods/pears.gin"])
def test_a_registry_file_has_its_shadow_however_it_is_named(project, tmp_path, name):
    project("runs/run.gin", RUN.replace("registry/goods/pears.gin", name.format(tmp_path)))
    assert load("runs/run.gin").root.goods.size == 5000
    assert load("runs/run.gin", site="hut").root.goods.size == 5
    project("registry/sites/hut/goods/pears.gin", "include '../../../goods/pears.gin'\nPlaceCrate.size = 6\n")
    assert load("runs/run.gin", site="hut").root.goods.size == 6
