from .check import (
    CHANGES as CHANGES,
    FAILS as FAILS,
    IGNORED as IGNORED,
    RUNS as RUNS,
    MigrationReport as MigrationReport,
    check_migration as check_migration,
    report_json as report_json,
)
