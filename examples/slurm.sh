#!/bin/bash
# A SLURM job array whose tasks share one study.  Submit it with: sbatch examples/slurm.sh
#
#SBATCH --job-name=boca
#SBATCH --array=0-31
#SBATCH --cpus-per-task=4
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=boca-%A-%a.log
#SBATCH --signal=B:TERM@120

set -u
: "${DATABASE:=postgresql+psycopg://user@db.example.org/studies}"
: "${PYTHON:=python}"
: "${SCRIPT:=examples/many_hosts.py}"
export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"

# SLURM sends TERM to this shell two minutes before the time limit and before a preemption: pass it on and wait.
requeue() {
    kill -TERM "$child" 2>/dev/null
    wait "$child"
    if [ -n "${SLURM_JOB_ID:-}" ] && [ -n "${REQUEUE_AT_LIMIT:-1}" ]; then
        scontrol requeue "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}"
    fi
    exit 143
}
trap requeue TERM

"$PYTHON" "$SCRIPT" "$DATABASE" &
child=$!
wait "$child"
