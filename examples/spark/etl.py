"""Clean a CSV file and write it as Parquet.

submarine run etl.py --type spark --executor 2 -- hdfs:///raw/days.csv hdfs:///clean/days.parquet
"""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.read.csv(sys.argv[1], header=True, inferSchema=True).dropna()
rows.write.mode("overwrite").parquet(sys.argv[2])
print("rows", spark.read.parquet(sys.argv[2]).count(), flush=True)
spark.stop()
