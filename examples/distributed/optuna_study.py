"""Optuna over jobs: each trial of a study is a job; three of them run at a time.

`python optuna_study.py`

The study is a file beside this program. Jobs of `optuna_trial.py` get the parameters of their trial
by `--param` and return the accuracy, so the nodes need neither Optuna nor a shared file.
"""

# %%
import os

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

import submarine_jobs

TRIALS, AT_A_TIME = 6, 3
options = {"memory": "500M", "framework": "any"}
if python := os.environ.get("TRIAL_PYTHON"):
    options["python_env"] = python

# %%
study = optuna.create_study(
    study_name="digits",
    direction="maximize",
    storage=JournalStorage(JournalFileBackend("optuna.journal")),
    sampler=optuna.samplers.TPESampler(seed=1, constant_liar=True),
    load_if_exists=True,
)


def start():
    trial = study.ask()
    params = {
        "max_depth": trial.suggest_int("max_depth", 1, 6),
        "eta": trial.suggest_float("eta", 0.05, 1.0, log=True),
    }
    job = submarine_jobs.run(
        f"trial-{trial.number}",
        program="optuna_trial.py",
        file="digits.npz",
        params=params,
        returns=["accuracy"],
        **options,
    )
    return trial, job


# %%
done = sum(trial.state.is_finished() for trial in study.trials)
while done < TRIALS:
    running = [start() for _ in range(min(AT_A_TIME, TRIALS - done))]
    for trial, job in running:
        record = job.wait()
        if record.state.value == "SUCCEEDED":
            study.tell(trial, job.result["accuracy"])
        else:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        done += 1
        print(f"trial {trial.number} {trial.params}: {study.trials[trial.number].value}")

# %%
print(f"best {study.best_params}: accuracy {study.best_value:.4f}")
