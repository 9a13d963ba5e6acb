"""Pictures and animations from stored frames, independent of simulations and of JAX."""

# Views that `[render]` may name, each in one line; `simkit` adds them to the registry of scenario files.
VIEWS = {
    "field": "simkit.render.views:field",
    "particles": "simkit.render.views:particles",
    "bodies": "simkit.render.views:bodies",
    "chart": "simkit.render.views:chart",
}
