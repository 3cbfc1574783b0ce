"""Run methods on problems at equal capital, and show what came of it in tables and figures.

    boca bench run --problem branin --method boca --method random --seeds 20 --jobs 2 --out results
    boca bench table results
    boca bench figures results

A problem or a method of your own joins by its import path, `package.module:name`: see `methods`.
"""
