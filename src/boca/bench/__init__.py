"""Run methods on problems with equal budgets, and show the results in tables and figures.

    boca bench run --problem branin --method boca --method random --seeds 20 --jobs 2 --out results
    boca bench table results
    boca bench figures results

A problem or a method of your own is named by its import path, `package.module:name`: see `methods`.
"""
