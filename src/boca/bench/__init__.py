"""Run methods on problems at equal capital, and print what came of it as tables.

    python -m boca.bench run --problem branin --method boca --method random --seeds 20 --jobs 2 --out results
    python -m boca.bench table results

A problem or a method of your own joins by its import path, `package.module:name`: see `methods`.
"""
