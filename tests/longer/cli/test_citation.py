"""BibTeX of simkit, of scenarios and of the parts they use."""


def test_a_run_directory_cites_what_its_scenario_does(simkit):
    assert simkit("run", "projectile", "--no-render", "--output", "thrown").code == 0
    assert simkit("cite", "thrown").out == simkit("cite", "projectile").out
