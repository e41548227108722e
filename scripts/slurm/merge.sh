#!/bin/bash
# Joins the shards of a run: sbatch --dependency=afterok:JOB scripts/slurm/merge.sh OUT [options of npl merge]
#SBATCH --job-name=npl-merge
#SBATCH --ntasks=1
#SBATCH --requeue
#SBATCH --open-mode=append
exec "${NPL:-npl}" merge "$@"
