"""Pictures and animations from stored frames, independent of simulations and of JAX."""

# Views that `[render]` may name, each in one line; `simkit` adds them to the registry of scenario files.
VIEWS = {
    "field": "simkit.render.declarations:field",
    "particles": "simkit.render.declarations:particles",
    "bodies": "simkit.render.declarations:bodies",
    "curves": "simkit.render.declarations:curves",
    "chart": "simkit.render.declarations:chart",
}
