"""A workflow in the words of other schedulers: a DAG file of Airflow's, lines of a crontab.

Writes texts; what a node runs is ``node_commands``' and the same everywhere.
"""
