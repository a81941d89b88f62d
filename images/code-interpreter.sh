# code-interpreter - base and what a notebook's cell expects: a Jupyter kernel, numpy, pandas,
# matplotlib and friends, all from Debian, for the system's own python3; and the server that runs
# code for E2B's clients, in Python, JavaScript, TypeScript and bash.
. ./code-interpreter/recipe.sh
