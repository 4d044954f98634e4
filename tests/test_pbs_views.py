"""What views make of PBS's output: odd shapes of it, and what is none."""

import json
from collections.abc import Mapping

import pytest

from hyce.views import VIEWS, Viewer
from hyce.views.pbs_attributes import read

ALICE = Viewer("alice", ("staff", "physics"))
ROW = "{number}.pbs         alice         workq         job         --     1     1    4gb 01:00 {state}  -- "


def view(name: str, text: str, viewer: Viewer = ALICE) -> str:
    return VIEWS[name]([text], viewer)


def nodes(**by_name: Mapping[str, object]) -> str:
    return json.dumps({"pbs_server": "pbs", "nodes": by_name})


def gpu_node(
    model: object = "A100", total: object = 4, used: object = 0, **others: object
) -> dict[str, object]:
    available = {"ncpus": 8, "ngpus": total} | ({"gpu_model": model} if model else {})
    return {"state": "free", "resources_available": available, "resources_assigned": {"ngpus": used}} | others


# -- attributes ------------------------------------------------------------------------------------------


def test_a_value_goes_on_behind_a_tab() -> None:
    (job,) = read(
        "Job Id: 7.pbs\n    comment = Not Run\n\tning: why\n    empty = \n    Job_Name = a=b, c = d\n\n"
    )
    assert job.name == "7.pbs"
    assert dict(job.attributes) == {"comment": "Not Running: why", "empty": "", "Job_Name": "a=b, c = d"}


def test_resources_of_an_attribute() -> None:
    (job,) = read(
        "Job Id: 7.pbs\n    Resource_List.mem = 4gb\n    Resource_List.ncpus = 2\n    Resource_Lists.x = 1\n"
    )
    assert job.below("Resource_List") == {"mem": "4gb", "ncpus": "2"}


def test_several_objects_keep_apart() -> None:
    first, second = read("Queue: a\n    enabled = True\n\nQueue: b\n    started = False\n")
    assert dict(first.attributes) == {"enabled": "True"}
    assert dict(second.attributes) == {"started": "False"}


def test_a_tab_at_the_beginning_belongs_to_nothing() -> None:
    (job,) = read("Job Id: 7.pbs\n\tlost\n    Job_Name = x\n")
    assert dict(job.attributes) == {"Job_Name": "x"}


def test_text_without_objects_is_refused() -> None:
    assert read("") == ()
    with pytest.raises(ValueError, match="no object with attributes"):
        read("usage: qstat [-f]\n")


@pytest.mark.parametrize("name", [name for name in VIEWS if name.startswith("pbs_") and name != "pbs_queues"])
def test_what_is_not_its_program_s_output_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        view(name, "something else altogether\n")


@pytest.mark.parametrize("name", ["pbs_job", "pbs_queue_limits", "pbs_nodes", "pbs_gpus"])
def test_an_empty_output_is_not_taken_for_an_answer(name: str) -> None:
    with pytest.raises(ValueError):
        view(name, "")


# -- jobs ------------------------------------------------------------------------------------------------


def test_an_unknown_state_stays_a_letter() -> None:
    assert "state Z: 1\n" in view("pbs_my_jobs", ROW.format(number=1, state="Z"))
    assert "job_state = Z\n" in view("pbs_job", "Job Id: 1.pbs\n    job_state = Z\n")


def test_of_many_ended_jobs_the_newest_are_shown() -> None:
    text = view(
        "pbs_history", "\n".join(ROW.format(number=number, state="F") for number in range(1000, 1250))
    )
    assert text.startswith("Jobs: 100\nstate F (finished): 100\n")
    assert "1149.pbs" not in text
    assert "1150.pbs" in text
    assert "1249.pbs" in text


def test_what_is_said_of_every_job_is_left_out() -> None:
    text = view(
        "pbs_job",
        "Job Id: 1.pbs\n    Hold_Types = n\n    run_count = 1\n    job_state = R\n    Priority = 0\n",
    )
    assert text == "Job 1.pbs\n  job_state = R: running\n"


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        ("0kb", "0kb"),
        ("900kb", "900kb"),
        ("1536kb", "1.5mb"),
        ("25165824kb", "24gb"),
        ("2048mb", "2gb"),
        ("4gb", "4gb"),
    ],
)
def test_sizes(size: str, shown: str) -> None:
    text = view("pbs_job", f"Job Id: 1.pbs\n    resources_used.mem = {size}\n")
    assert text.splitlines()[-1].split() == ["mem", "-", shown]


def test_several_kinds_of_hold() -> None:
    text = view("pbs_job", "Job Id: 1.pbs\n    Hold_Types = uos\n")
    assert "Hold_Types = uos: held by its user, by an operator, by the system" in text


# -- queues and nodes ------------------------------------------------------------------------------------


def test_a_queue_without_limits() -> None:
    text = view(
        "pbs_queue_limits",
        "Queue: routeq\n    queue_type = Route\n    route_destinations = a,b\n    enabled = True\n",
    )
    assert "PBS sets no limits for this queue itself" in text
    assert "route_destinations = a,b" in text


def test_limits_of_groups_and_projects() -> None:
    limits = "[g:physics=5],[g:PBS_GENERIC=2],[p:big=1],[u:PBS_ALL=9]"
    text = view("pbs_queue_limits", f"Queue: q\n    max_run_res.ncpus = {limits}\n")
    assert (
        "max_run_res.ncpus = 5 for group physics; 2 for each group; 1 for project big; 9 for all together"
        in text
    )


def test_no_queues() -> None:
    assert view("pbs_queues", "") == "PBS has no queues.\n"


# -- GPUs ------------------------------------------------------------------------------------------------


def test_numbers_may_be_texts_and_zero_may_be_missing() -> None:
    text = view("pbs_gpus", nodes(a=gpu_node(total="4", used="3"), b=gpu_node(resources_assigned={})))
    assert "A100: 8 GPUs on 2 nodes: 5 free, 3 in use\n" in text


def test_more_in_use_than_there_are() -> None:
    assert "4 GPUs on 1 node: 0 free, 4 in use" in view("pbs_gpus", nodes(a=gpu_node(used=9)))


@pytest.mark.parametrize(
    "resources",
    [
        {"gpu_type": "L40"},
        {"GPU_Model": "L40"},
        {"gpu_kind": "L40"},
        {"gpu_mem_mb": 48000, "gpu_arch": "L40"},
    ],
)
def test_sites_have_their_own_names_for_the_model(resources: dict[str, object]) -> None:
    node = {"state": "free", "resources_available": {"ngpus": 1} | resources}
    assert "L40: 1 GPUs" in view("pbs_gpus", nodes(a=node))


@pytest.mark.parametrize(
    "state", ["down", "offline", "state-unknown,down", "free,offline", "stale", "maintenance"]
)
def test_nothing_is_free_on_nodes_out_of_service(state: str) -> None:
    text = view("pbs_gpus", nodes(a=gpu_node(state=state)))
    assert "0 free, 0 in use, 4 out of service" in text


@pytest.mark.parametrize("state", ["job-exclusive", "resv-exclusive", "job-busy", "resv-exclusive,job-busy"])
def test_nothing_is_free_on_nodes_that_take_no_further_job(state: str) -> None:
    assert "0 free, 4 in use\n" in view("pbs_gpus", nodes(a=gpu_node(state=state)))


def test_a_sleeping_node_s_gpus_are_free() -> None:
    assert "a: 4 free of 4, sleep\n" in view("pbs_gpus", nodes(a=gpu_node(state="sleep")))


def test_no_gpus() -> None:
    assert (
        view("pbs_gpus", nodes(a={"state": "free", "resources_available": {"ncpus": 4}}))
        == "PBS knows no node with GPUs.\n"
    )


def test_groups_and_patterns() -> None:
    cluster = nodes(k091=gpu_node(), k092=gpu_node("H100"), k101=gpu_node("V100"), k200=gpu_node("L40"))
    settings = ("physics = k09[0-9]", "chemistry=k10*", "*=k2*", "broken")
    text = view("pbs_gpus", cluster, Viewer("alice", ("staff", "physics"), settings))
    mine, _, others = text.partition("GPUs that other groups may use, but not yours:")
    assert mine.startswith("GPUs that you may use, as a member of physics:\n")
    assert [model for model in ("A100", "H100", "V100", "L40") if model in mine] == ["A100", "H100", "L40"]
    assert others.strip() == "V100: 4 GPUs on 1 node: 4 free, 0 in use"


def test_nothing_for_this_user() -> None:
    text = view("pbs_gpus", nodes(a=gpu_node()), Viewer("alice", ("staff",), ("physics=*",)))
    assert text.startswith(
        "GPUs that you may use, as a member of no group that the site has named:\n  none\n"
    )
    assert "A100: 4 GPUs" in text


def test_of_many_nodes_those_with_room_are_named() -> None:
    text = view(
        "pbs_gpus",
        nodes(**{f"g{number:03}": gpu_node(used=4 if number < 90 else 1) for number in range(100)}),
    )
    assert "A100: 400 GPUs on 100 nodes: 30 free, 370 in use" in text
    assert "g095: 3 free of 4" in text
    assert "and 75 more nodes, with 0 free" in text
    assert len(text.splitlines()) < 30


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"nodes": []}', '{"nodes": {"a": 1}}', "null"])
def test_broken_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        view("pbs_gpus", text)
