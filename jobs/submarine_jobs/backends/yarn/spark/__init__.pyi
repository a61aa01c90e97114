from .arguments import spark_arguments as spark_arguments, staging_directory as staging_directory
from .installation import SparkInstallation as SparkInstallation, find_spark as find_spark
from .submission import (
    SparkSubmitter as SparkSubmitter,
    kerberos_refusal as kerberos_refusal,
    refusal_of as refusal_of,
)
