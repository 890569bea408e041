"""Ways to compute a function, and the sizes at which one gives way to another; `choice` takes one of them.

Sizes are measured on x86-64 with AVX2: where two ways take equal time, or compiling begins to take seconds.
"""

HOW = {
    "straight": "every operation written out once; a batch goes in vectors of samples",
    "solved": "straight, but a dense solve by loops: constraints whose rank may change",
    "bodies": "a loop over the bodies, whose code does not grow with them",
    "stages": "straight pieces between loops that run until they converge: steps on a ground",
    "interpreted": "by NumPy: too large to write out",
}

# -- bodies --------------------------------------------------------------------------------------------------

MAX_STRAIGHT_BODIES = 60  # straight-line code is faster up to it and compiles in a second or two
MAX_STRAIGHT_JOINTS = 20  # joints of at most three bodies each: so few never are more than 60 bodies
MAX_STRAIGHT_BODIES_OF_M = 80  # the same of a mass matrix of few operations, which has a kernel for one state
MAX_STRAIGHT_OPERATIONS_OF_M = 24_800  # operations, roughly, of those mass matrices
MAX_STRAIGHT_DEPTH = 15  # mean depth, joints: deeper trees are accelerated faster by a loop from 20 joints on
MAX_STRAIGHT_FREEDOMS = 120  # freedoms of a matrix, whose code grows by their square, however few bodies
MIN_LOOP_BODIES = 16  # rows are moved in blocks of as many columns as a tile has lanes
MAX_BLOCKED_BODIES = 2**18  # beyond it the arena of a tile takes hundreds of MB
MAX_BLOCKED_SCALARS = 2**15  # scalars that last from block to block: in all lanes they take 2 MB

# -- motions of the configuration manifold -------------------------------------------------------------------

MAX_MANIFOLD_STEPS = 3_000  # steps, eight entries of a matrix as one: a second of compiling; beyond it NumPy
