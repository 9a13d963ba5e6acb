"""The device that computes: chosen by the caller, by the size of a system, and by the run that is resumed.

A machine with another device is one whose default platform is said to be a GPU, beside the CPU that computes.
"""

import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from simkit.core import devices
from simkit.core.devices import KINDS, computing_as, computing_on, platform, plugins, settle
from simkit.core.formulation import by_device, default_device
from simkit.engine.memory import available_bytes
from simkit.errors import UserError
from simkit.jobs.chunks import Chunks, cores_for_chunks, devices_of_members
from simkit.jobs.executors import worker
from simkit.jobs.job import Job, Prepared
from simkit.jobs.optimizations import planned as planned_optimization
from simkit.jobs.runs import Run
from simkit.jobs.sweep_functions import planned
from simkit.storage.run_directory import RunDirectory
from tests.tables import every, lacking, misses, refusal
from tests.toys import PENDULUMS, toy

LARGE = devices.LAUNCHES * devices.RATE


@pytest.fixture
def gpu(monkeypatch):
    """A machine whose default device is a GPU, on which nothing may compute."""
    present = devices.is_present
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(devices, "is_present", lambda kind: kind == "gpu" or present(kind))


def forbidden():
    raise AssertionError("the size of the system is computed")


def small_and_large():
    with computing_on("auto"):
        settle("a ball", lambda: LARGE - 1)
        small = platform()
    with computing_on("auto"):
        settle("a flow", lambda: LARGE)
        return small, platform()


def test_auto_takes_the_cpu_for_a_small_system_says_so_in_one_line_and_ends_with_the_call(gpu):
    with pytest.warns(UserWarning, match=r"a ball computes on the CPU.* 200 kB .*device=\"gpu\"") as told:
        assert small_and_large() == ("cpu", "gpu")
    assert len(told) == 1 and "\n" not in str(told[0].message)
    assert platform() == "gpu" and jax.config.jax_default_device is None


def test_auto_chooses_once_in_a_call_and_only_where_there_is_a_choice(gpu, monkeypatch):
    with computing_on("auto"):
        settle("a flow", lambda: LARGE)
        settle("its derivative", forbidden)
    settle("outside of such a call", forbidden)
    with computing_on("cpu"):
        settle("with a device", forbidden)
    with computing_on("auto"), jax.default_device(jax.devices("cpu")[0]):
        settle("with a device set in JAX", forbidden)
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    with computing_on("auto"):
        settle("on a machine with a CPU only", forbidden)


def test_an_unknown_or_absent_device_is_refused_in_one_line_by_every_function():
    calls = {
        "run": simkit.run,
        "sweep": lambda scenario, device: simkit.sweep(scenario, seeds=2, device=device),
        "value_and_grad": lambda scenario, device: simkit.value_and_grad(scenario, "frequency", device=device),
        "hessian": lambda scenario, device: simkit.hessian(scenario, "frequency", device=device),
        "optimize": lambda scenario, device: simkit.optimize(scenario, "frequency", device=device),
    }

    def check(call):
        absent = refusal(UserError, call, toy(), device="gpu")
        unknown = refusal(UserError, call, toy(), device="cuda")
        assert "\n" not in absent + unknown
        return lacking(absent, "device = gpu", "only cpu", "pip install") or lacking(unknown, "'cuda'", *KINDS)

    assert not misses(calls, check)


def test_an_absent_gpu_whose_plugin_is_installed_is_not_told_to_be_installed(monkeypatch):
    monkeypatch.setattr(devices.metadata, "version", lambda name: "0.12.0")
    assert "jax-cuda13-plugin 0.12.0" in plugins()
    with pytest.raises(UserError, match=r"jax-cuda13-plugin 0\.12\.0.* finds none"), computing_on("gpu"):
        pass


def test_a_chosen_cpu_has_its_formulations_cores_and_memory(gpu):
    x = np.arange(3.0, dtype=np.float32)

    def slope():
        return jax.jit(jax.grad(lambda x: jnp.sum(by_device(x, cpu=jnp.sin, accelerator=jnp.cos))))(x)

    assert default_device() == "accelerator"
    with computing_on("cpu"):
        assert default_device() == "cpu"
        np.testing.assert_allclose(slope(), np.cos(x), atol=1e-6)
        assert cores_for_chunks() == jax.local_devices(backend="cpu") and devices_of_members() == []
        assert available_bytes() > 0
    with jax.default_device(jax.devices("cpu")[0]):
        assert cores_for_chunks() == []
    np.testing.assert_allclose(slope(), -np.sin(x), atol=1e-6)


def test_the_bytes_by_which_auto_chooses_are_those_of_all_that_advances_together(x64):
    def size_of(job: Job):
        simulation = job.simulation(new=True)
        return job.bytes_at_once(Prepared(simulation, job.program(simulation)))

    scenario, large = toy(), toy(size=30)
    alone = size_of(Run(scenario))
    assert 0 < alone < size_of(Run(large))
    over, sizes = {"frequency": [1.0, 2.0, 3.0]}, {"config.size": [3, 30]}
    optimized = {"method": "lbfgs", "iterations": 2, "learning_rate": None, "mode": "shortest"}
    jobs = {
        "members": (planned(scenario, over, seeds=2), 6 * alone),
        "a chunk": (planned(scenario, over, seeds=2, chunk=4), 4 * alone),
        "the largest configuration": (planned(scenario, sizes | over), 3 * size_of(Run(large))),
        "an optimized run": (planned_optimization(scenario, "frequency", "energy", starts=None, **optimized), alone),
        "starts": (planned_optimization(scenario, "frequency", "energy", starts=5, **optimized), 5 * alone),
    }
    assert not misses(jobs, lambda job, size: size_of(job) == size)


@every(
    {
        "run": lambda: simkit.run(toy()),
        "sweep": lambda: simkit.sweep(toy(), {"frequency": [1.0, 2.0]}),
        "value_and_grad": lambda: simkit.value_and_grad(toy(), "frequency"),
        "optimize": lambda: simkit.optimize(toy(), "frequency", iterations=2),
    }
)
def test_a_small_system_is_computed_on_the_cpu_of_a_machine_with_a_gpu(gpu, call):
    with pytest.warns(UserWarning, match="computes on the CPU"):
        call()
    assert platform() == "gpu"


def test_a_run_is_resumed_on_the_kind_of_device_on_which_it_began(gpu, tmp_path):
    simkit.run(toy(), output=tmp_path / "run", device="cpu")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert len(manifest["devices"]) == 1 and manifest["devices"][0].startswith("cpu:0 ")
    assert manifest["device"] == "cpu"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of another kind of device
        simkit.resume(tmp_path / "run")
    kinds = {
        "cpu": "cpu",
        "": "gpu",
        "cpu:0 AMD EPYC": "cpu",
        "gpu:0 NVIDIA L4": "gpu",
        "cuda:0 NVIDIA L4": "gpu",
        "tpu:0 TPU v5e": "gpu",
    }
    for began, kind in kinds.items():
        with computing_as(began):
            assert platform() == kind, began


def test_a_worker_computes_on_the_device_that_was_chosen_for_its_sweep_and_else_on_its_own(tmp_path, monkeypatch):
    swept = {"cpu": tmp_path / "chosen", "auto": tmp_path / "not chosen"}
    for device, folder in swept.items():
        simkit.sweep(toy(), {"frequency": [1.0, 2.0]}, output=folder, device=device)
    seen = []
    monkeypatch.setattr(Chunks, "compute", lambda *arguments, **options: seen.append(platform()))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    for folder in swept.values():
        worker.compute(folder, RunDirectory.open(folder).identity, 0, 1, print, print)
    assert seen == ["cpu", "gpu"]


def test_worker_processes_of_a_sweep_on_the_cpu_see_no_other_device(tmp_path, monkeypatch):
    environments = []

    def started(*arguments, env, **options):
        environments.append(env.get("JAX_PLATFORMS"))
        raise OSError

    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setattr("simkit.jobs.executors.local_workers.subprocess.Popen", started)
    for device in ("cpu", "auto"):
        with pytest.raises(OSError):
            simkit.sweep(toy(), {"frequency": [1.0, 2.0]}, output=tmp_path / device, device=device, workers=1)
    assert environments == ["cpu", None]


def test_commands_tell_the_choice_in_one_line_and_name_the_device_in_their_report(gpu, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    commands = {
        "run": ["run", "toy.toml", "-o", "run", "--no-render"],
        "sweep": ["sweep", "toy.toml", "--seeds", "2", "-o", "sweep", "--no-render"],
        "grad": ["grad", "toy.toml", "--wrt", "frequency"],
        "optimize": ["optimize", "toy.toml", "--wrt", "frequency", "--iterations", "1", "-o", "best", "--no-render"],
    }

    def check(*words):
        code = main([*words, "--json"])
        ran = capsys.readouterr()
        told = [line for line in ran.err.splitlines() if "computes on the CPU" in line]
        assert code == 0 and len(told) == 1 and told[0].endswith("; --device gpu computes there"), ran.err
        return json.loads(ran.out)["devices"][0].startswith("cpu:0 ")

    assert not misses({name: tuple(words) for name, words in commands.items()}, check)
    assert main(["resume", "run", "--no-render", "--json"]) == 0
    ran = capsys.readouterr()
    assert "changed" not in ran.err and json.loads(ran.out)["devices"][0].startswith("cpu:0 ")
