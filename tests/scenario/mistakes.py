"""Mistakes in a scenario file: the replaced text, its replacement, and words of the message."""

RATE = "default = 0.5\nbounds = [0.1, 10]"
MISTAKES = {
    "below bounds": (
        RATE,
        "default = -5\nbounds = [0.1, 10]",
        "toy.toml: params.rate.default = -5 is below its lower bound 0.1; choose a value in [0.1, 10]",
    ),
    "above bounds": (
        RATE,
        "default = 20.0\nbounds = [0.1, 10]",
        "toy.toml: params.rate.default = 20 is above its upper bound 10; choose a value in [0.1, 10]",
    ),
    "matrix entry out of bounds": (
        "[[1, 0.5], [0.5, 1]]",
        "[[1, 0.5], [0.5, 7]]",
        "params.coupling.default[1][1] = 7 is above its upper bound 2; choose a value in [0, 2]",
    ),
    "ragged matrix": (
        "[[1, 0.5], [0.5, 1]]",
        "[[1, 0.5], [0.5]]",
        "params.coupling.default = [[1, 0.5], [0.5]] has rows of different lengths; write rows of one length",
    ),
    "empty array": ("[[1, 0.5], [0.5, 1]]", "[]", "params.coupling.default = [] is empty"),
    "bounds swapped": (
        "bounds = [0.1, 10]",
        "bounds = [10, 0.1]",
        "params.rate.bounds = [10, 0.1] has its lower end not below its upper end; swap or widen",
    ),
    "bounds equal": (
        "bounds = [0.1, 10]",
        "bounds = [1, 1]",
        "params.rate.bounds = [1, 1] has its lower end not below",
    ),
    "bounds not a pair": (
        "bounds = [0.1, 10]",
        "bounds = [1]",
        "params.rate.bounds = [1] is not a pair; write [low, high]",
    ),
    "bounds not a number": (
        "bounds = [0.1, 10]",
        "bounds = [0, nan]",
        "params.rate.bounds[1] = nan is not a finite number of float64; write one",
    ),
    "default nan": (
        RATE,
        "default = nan\nbounds = [0.1, 10]",
        "params.rate.default = nan is not a finite number of float64; write one",
    ),
    "default boolean": (
        RATE,
        "default = true\nbounds = [0.1, 10]",
        "params.rate.default = true is no number; write one",
    ),
    "default text": (
        RATE,
        "default = '0.5'\nbounds = [0.1, 10]",
        "params.rate.default = '0.5' is no number; write one",
    ),
    "default date": (
        RATE,
        "default = 2020-01-01\nbounds = [0.1, 10]",
        "params.rate.default = 2020-01-01 is no number; write one",
    ),
    "default huge integer": (
        RATE,
        f"default = 0x1{'0' * 300}\nbounds = [0.1, 10]",
        "params.rate.default = an integer of 1201 bits is not a finite number of float64",
    ),
    "default of too many digits": (RATE, f"default = {'9' * 5000}\nbounds = [0.1, 10]", "numbers must fit in 64 bits"),
    "parameter name": (
        "[params.rate]",
        '[params."my rate"]',
        "params: 'my rate' is not a name; use up to 64 letters, digits and _",
    ),
    "parameter name over two lines": ("[params.rate]", '[params."my\\nrate"]', "params: 'my rate' is not a name"),
    "unknown key at the top": (
        'title = "Decay"',
        'tittle = "Decay"',
        "toy.toml: tittle is not a known key; did you mean 'title'?",
    ),
    "unknown key over two lines": (
        'title = "Decay"',
        '"a\\nb" = "Decay"',
        "toy.toml: a b is not a known key; known names:",
    ),
    "unknown key of a parameter": (
        'unit = "1/s"',
        'units = "1/s"',
        "params.rate.units is not a known key; did you mean 'unit'?",
    ),
    "unknown key of run": ("steps = 100\n", "step = 100\n", "run.step is not a known key; did you mean 'steps'?"),
    "unknown key of an objective": (
        "square = true",
        "squared = true",
        "objectives.decayed.squared is not a known key; did you mean 'square'?",
    ),
    "unknown key of render": (
        "colormap =",
        "colourmap =",
        "render.colourmap is not a known key; did you mean 'colormap'?",
    ),
    "unknown key of a validation": (
        "expected = 0.606",
        "expect = 0.606",
        "validation[0].expect is not a known key; did you mean 'expected'?",
    ),
    "title empty": ('"Decay"', '" "', "title = ' ' is empty; write at least one word"),
    "title too long": ('"Decay"', f'"{"D" * 20000}"', "DDD...DD' has 20000 characters; write at most 120"),
    "unit too long": ('unit = "1/s"', f'unit = "{"s" * 101}"', "sss...ss' has 101 characters; write at most 100"),
    "title over two lines": (
        '"Decay"',
        '"""De\ncay"""',
        "title = 'De\\ncay' contains the character '\\n'; write it on one line",
    ),
    "title with a terminal escape": (
        '"Decay"',
        '"\\u001b[31mred"',
        "contains the character '\\x1b'; write it on one line without it",
    ),
    "title not a string": ('"Decay"', "3", "title = 3 is no text; write it in quotes"),
    "name with capitals": (
        '"toy_decay"',
        '"Toy-Decay"',
        "name = 'Toy-Decay' is not a name; use up to 64 lowercase letters, digits and _, starting with a letter",
    ),
    "name climbing out of a folder": ('"toy_decay"', '"../toy"', "name = '../toy' is not a name"),
    "name with a newline at its end": (
        '"toy_decay"',
        '"toy_decay\\n"',
        "name = 'toy_decay\\n' contains the character '\\n'",
    ),
    "simulation without a domain": (
        '"toy.decay"',
        '"decay"',
        "simulation = 'decay' is not a simulation's name; write domain.name in lowercase, such as 'flow.domain'",
    ),
    "simulation an import path": ('"toy.decay"', '"os:system"', "simulation = 'os:system' is not a simulation's name"),
    "tags not a list": ('["toy", "test"]', '"toy"', "tags = 'toy' is no list; write several in brackets"),
    "tag not a string": ('["toy", "test"]', '["toy", 3]', "tags[1] = 3 is no text; write it in quotes"),
    "config nan": ("width = 2.0", "width = nan", "config.width = nan is not a finite number of float64; write one"),
    "config table": (
        "width = 2.0",
        'width = {"a b" = 1}',
        "config.width.a b is not a name; use up to 64 letters, digits and _, starting with a letter",
    ),
    "config date in a list": (
        "cells = [4, 3]",
        "cells = [4, 2020-01-01]",
        "config.cells[1] = 2020-01-01 is a date or time",
    ),
    "config nested deep": ("cells = [4, 3]", f"cells = {'[' * 12}1{']' * 12}", "is nested over 8 deep; flatten it"),
    "config not a table": ("[config]", "[[config]]", "toy.toml: config = [{...}] is no table; write names and values"),
    "steps missing": (
        "steps = 100\n",
        "",
        "run.steps is missing; give an integer: number of steps, a multiple of every",
    ),
    "steps zero": ("steps = 100\n", "steps = 0\n", "run.steps = 0 is not an integer of at least 1; write one"),
    "steps a float": (
        "steps = 100\n",
        "steps = 100.0\n",
        "run.steps = 100.0 is not an integer of at least 1; write 100",
    ),
    "steps a fraction": (
        "steps = 100\n",
        "steps = 10.5\n",
        "run.steps = 10.5 is not an integer of at least 1; write one",
    ),
    "steps a boolean": (
        "steps = 100\n",
        "steps = true\n",
        "run.steps = true is not an integer of at least 1; write one",
    ),
    "steps between multiples": (
        "steps = 100\n",
        "steps = 105\n",
        "run.steps: steps = 105 is not a multiple of every = 10; use run.steps=100 or 110, or run.every=7",
    ),
    "steps below every": (
        "steps = 100\n",
        "steps = 7\n",
        "run.steps: steps = 7 is not a multiple of every = 10; use run.steps=10, or run.every=7",
    ),
    "precision": ('"float32"', '"double"', "run.precision = 'double' is unknown; choose one of float32, float64"),
    "precision misspelled": ('"float32"', '"float65"', "run.precision = 'float65' is unknown; did you mean 'float64'?"),
    "seed negative": ("seed = 3", "seed = -1", "run.seed = -1 is not an integer of 0 to 4294967295; write one"),
    "objective name": ("[objectives.amplitude]", '[objectives."a b"]', "objectives: 'a b' is not a name"),
    "reduce": (
        '"mean"',
        '"average"',
        "'average' is unknown; choose one of final, mean, root_mean_square, maximum, minimum, sum",
    ),
    "goal": ('"maximize"', '"maximise"', "objectives.decayed.goal = 'maximise' is unknown; did you mean 'maximize'?"),
    "quantity an expression": (
        'quantity = "amplitude"\nreduce',
        'quantity = "final(amplitude)"\nreduce',
        "objectives.decayed.quantity = 'final(amplitude)' is not a name; "
        "write an expression as expression = ..., without quantity",
    ),
    "square": (
        "square = true",
        "square = 1",
        "objectives.decayed.square = 1 is neither true nor false; write one of them",
    ),
    "view": (
        'view = "field"',
        'view = "particle"',
        "toy.toml: render.view = 'particle' is unknown; did you mean 'particles'?",
    ),
    "view not a string": (
        'view = "field"',
        "view = 2",
        "render.view = 2 is unknown; choose one of bodies, chart, field, particles",
    ),
    "limits": ("[-1.0, 1.0]", "[1.0, -1.0]", "render.limits = [1, -1] has its lower end not below its upper end"),
    "frames per second": (
        "frames_per_second = 25",
        "frames_per_second = 0",
        "render.frames_per_second = 0 is not positive; choose a value above 0",
    ),
    "camera of a field": (
        "frames_per_second = 25",
        'camera = "side"',
        "toy.toml: render.camera has no effect on view = 'field'; leave it out",
    ),
    "window of disks": (
        'view = "field"',
        'view = "particles"\nwindow = { x = [0, 1] }',
        "toy.toml: render.window has no effect on view = 'particles'; leave it out",
    ),
    "window along z": (
        'view = "field"',
        'view = "field"\nwindow = { z = [0, 1] }',
        "toy.toml: render.window.z is not a known key; known names: x, y",
    ),
    "window": ('view = "field"', 'view = "field"\nwindow = { x = [1, 0] }', "toy.toml: render.window.x = [1, 0]"),
    "colors of a chart": (
        'view = "field"',
        'view = "chart"',
        "render.colormap has no effect on view = 'chart'; leave it out",
    ),
    "camera": (
        'view = "field"',
        'view = "bodies"\ncamera = "front"',
        "render.camera = 'front' is unknown; choose one of side, perspective",
    ),
    "azimuth from the side": (
        'view = "field"',
        'view = "bodies"\ncamera = "side"\nazimuth = 30',
        "render.azimuth has an effect only beside camera = 'perspective'; add that, or leave azimuth out",
    ),
    "elevation from straight above": (
        'view = "field"',
        'view = "bodies"\ncamera = "perspective"\nelevation = 90',
        "render.elevation = 90 is above its upper bound 89; choose a value in [-89, 89]",
    ),
    "validation in single brackets": (
        '[[validation]]\nquantity = "amplitude"',
        '[validation]\nquantity = "amplitude"',
        "not valid TOML",
    ),
    "tolerance": (
        'tolerance = 1e-2\nsource = "exponential decay"\nset',
        'tolerance = 0.0\nsource = "exponential decay"\nset',
        "validation[0].tolerance = 0 is not positive",
    ),
    "derivative of nothing": (
        'objective = "amplitude"\n',
        "",
        "validation[1].derivative has an effect only beside objective; add that, or leave derivative out",
    ),
    "objective without derivative": (
        'derivative = "rate"\n',
        "",
        "validation[1].objective has an effect only beside derivative",
    ),
    "objective unknown": (
        'objective = "amplitude"',
        'objective = "amplitud"',
        "validation[1].objective = 'amplitud' is not defined in this file; did you mean 'amplitude'?",
    ),
    "quantity against objective": (
        'derivative = "rate"',
        'derivative = "rate"\nquantity = "energy"',
        "validation[1].quantity has no effect beside objective; leave it out",
    ),
    "reduction of a validation unknown": (
        "expected = 0.606",
        'expected = 0.606\nreduce = "max"',
        "validation[0].reduce = 'max' is unknown; did you mean 'maximum'?",
    ),
    "reduction beside a derivative": (
        'derivative = "rate"',
        'derivative = "rate"\nreduce = "mean"',
        "validation[1].reduce has no effect beside objective; leave it out",
    ),
    "key given twice": (
        'title = "Decay"',
        'title = "Decay"\ntitle = "Decay"',
        "not valid TOML: Cannot overwrite a value (at line 3, column 16)",
    ),
    "value missing": (
        "seed = 3",
        "seed =",
        "toy.toml: not valid TOML: Invalid value (at line 35, column 7); correct that line",
    ),
    "lists nested without end": (
        "seed = 3",
        f"seed = {'[' * 50_000}",
        "toy.toml: not valid TOML: lists or tables are nested too deeply; flatten them",
    ),
    "tables nested without end": (
        "seed = 3",
        "seed = " + "{a = " * 50_000,
        "lists or tables are nested too deeply; flatten them",
    ),
    "dotted key without end": ("seed = 3", f"{'a.' * 200_000}a = 3", "a key has more than 32 dotted parts; shorten it"),
    "dotted key in quotes": (
        "seed = 3",
        "seed = {" + '\'=,\'."\\"" . ' * 50_000 + "a = 3}",
        "a key has more than 32 dotted parts; shorten it",
    ),
    "dotted header": ("seed = 3", f"[{'a.' * 200_000}a]", "a key has more than 32 dotted parts; shorten it"),
}
# Those that only the simulation can tell.
MISTAKES_OF_VALIDATIONS = {
    "set out of bounds": (
        "{rate = 0.5,",
        "{rate = 50,",
        "toy.toml: validation[0].set.rate = 50 is above its upper bound 10; choose a value in [0.1, 10]",
    ),
    "set unknown": (
        "{rate = 0.5,",
        "{rat = 0.5,",
        "validation[0].set.rat is not a key of toy_decay; did you mean 'rate'?",
    ),
    "set steps": (
        "steps = 200}",
        "steps = 205}",
        "is not a multiple of every = 10; use validation[0].set.steps=200 or 210, or validation[0].set.every=5",
    ),
    "derivative unknown": (
        'derivative = "rate"',
        'derivative = "rat"',
        "validation[1].derivative = 'rat' is not a parameter of toy.decay; did you mean 'rate'?",
    ),
    "derivative by an array": (
        'derivative = "rate"',
        'derivative = "coupling"',
        "validation[1].derivative = 'coupling' is an array; name a parameter that is a single number",
    ),
}
