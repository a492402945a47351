"""Right and wrong uses of the API: ``tests/project/test_api.py`` has mypy read this. Nothing here is run.

A line that ends in ``# wrong: ...`` must be refused with those words, and no other line.
"""

import numpy as np

import pyparq
from pyparq import col


def names_of_the_module() -> None:
    pyparq.reed_table("f")  # wrong: "reed_table"; maybe "read_table"
    print(pyparq.Scann)  # wrong: no attribute "Scann"
    for error in (pyparq.CorruptFileError, pyparq.OptionError, pyparq.UnverifiedFooterWarning):
        print(error.__name__)


def reading(names: list[str], paths: list[tuple[str, ...]]) -> None:
    pyparq.read_table("f", columns=["a", ("b", "c")], filters=[("a", ">", 1)], limit=5)
    pyparq.read_table("f", columns=names, filters=[[("a", ">", 1)], [("b", "in", [1]), ("c", "=", "x")]])
    pyparq.read_table("f", paths, (col("a") > 1) & ~col("b").is_null(), rows=slice(5))
    pyparq.read_table("f", tuple(names), binary_columns=set(names), limits=pyparq.Limits(max_page=1 << 20))
    pyparq.read_schema(b"", verify_checksums=False, decryption=pyparq.DecryptionProperties(b"0" * 16))
    options = pyparq.ReadOptions(coalesce_gap=5, coerce_int96_timestamp_unit="us")
    print(options.use_statistics)

    pyparq.read_table("f", colums=["a"])  # wrong: "colums"
    pyparq.read_table("f", filter=col("a") > 1)  # wrong: "filter"
    pyparq.read_table("f", columns=5)  # wrong: "columns"
    pyparq.read_table("f", filters=3)  # wrong: "filters"
    pyparq.read_table("f", tail_size="all")  # wrong: "tail_size"
    pyparq.read_schema("f", verify_checksum=False)  # wrong: "verify_checksum"
    pyparq.read_metadata("f", coerce_int96_timestamp_unit="h")  # wrong: "coerce_int96_timestamp_unit"
    pyparq.ReadOptions(use_statistic=True)  # wrong: "use_statistic"


def an_open_file(columns: list[str]) -> tuple[pyparq.Scan, pyparq.ScanPlan, pyparq.Table]:
    with pyparq.ParquetFile("f", use_threads=False, read_dictionary=columns) as file:
        scan: pyparq.Scan = file.scan(columns, col("a") == "x", limit=3)
        plan: pyparq.ScanPlan = scan.plan()
        told: pyparq.Explanation = scan.explain(execute=False)
        metadata: pyparq.FileMetaData = file.metadata
        print(told.bytes_fetched, metadata.num_rows, [field.name for field in scan.schema])
        condition: pyparq.Expression = col("a").isin([1, 2])
        file.read(columns, condition)
        file.scan(5)  # wrong: "scan"
        file.scan(filters=5)  # wrong: "filters"
        pyparq.ParquetFile("f", columns=columns)  # wrong: "columns"
        return scan, plan, file.execute(plan)


def what_comes_of_files_and_datasets() -> None:
    file, dataset = pyparq.ParquetFile("f"), pyparq.dataset("d")
    told: tuple[pyparq.Explanation, pyparq.DatasetExplanation] = file.explain(), dataset.explain()
    plans: tuple[pyparq.ScanPlan, pyparq.DatasetPlan] = file.plan(limit=1), dataset.plan(limit=1)
    maps: tuple[pyparq.FileMap, pyparq.FileMap] = file.map(), dataset.map()
    scans: tuple[pyparq.Scan, pyparq.DatasetScan] = (
        file.filter("a > 1").select("a"),
        dataset.select("a").filter("a > 1"),
    )
    print(told, plans[0].source.upper(), plans[1].source.upper(), plans[1].schema.names, maps, scans)
    print(file.plan().sorce)  # wrong: "sorce"
    print(dataset.explain().plan)  # wrong: "plan"
    dataset.filter("a > 1").expl()  # wrong: "expl"


def writing(codecs: dict[str, pyparq.SortKey], rates: dict[str, float], ids: dict[str, int]) -> None:
    data = {"a": np.arange(3), "b": ["x", None, "y"]}
    pyparq.write_table(data, "f", compression="zstd", compression_level=3, row_group_size=5, data_page_version="2.0")
    pyparq.write_table(data, "f", compression={"a": "zstd", "b": None}, compression_level={"a": 3}, field_ids=ids)
    pyparq.write_table(data, "f", bloom_filters=rates, bloom_filter_options={"a": {"ndv": 5}, "b": "auto"})
    pyparq.write_table(data, "f", bloom_filters=["a"], bloom_filter_options={"a": pyparq.BloomOptions(fpp=0.1)})
    pyparq.write_table(data, "f", sort_by=["a", ("b", "descending", "nulls_first"), pyparq.SortKey("c")])
    pyparq.write_table(data, "f", column_encoding={"a": "DELTA_BINARY_PACKED"}, use_dictionary=["b"], sort_by="a")
    pyparq.write_table(data, "f", column_key_value_metadata={"a": {"k": b"v"}}, key_value_metadata={"k": "v"})
    pyparq.write_table(data, "f", encryption=pyparq.EncryptionProperties(b"0" * 16, algorithm="AES_GCM_CTR_V1"))
    with pyparq.ParquetWriter(
        "f", pyparq.schema({"a": "int64"}), float_order={"a": "TYPE_ORDER"}, fsync=True
    ) as writer:
        writer.write(data)
    print(pyparq.WriteOptions(bloom_filter_layout="row_group", write_statistics=["a"]).row_group_size)

    pyparq.write_table(data, "f", compresion="zstd")  # wrong: "compresion"
    pyparq.write_table(data, "f", compression="zst")  # wrong: 'zst'
    pyparq.write_table(data, "f", compression={"a": "zst"})  # wrong: 'zst'
    pyparq.write_table(data, "f", row_group_size="many")  # wrong: "row_group_size"
    pyparq.write_table(data, "f", partition_cols=["a"])  # wrong: "partition_cols"
    pyparq.write_table(data, "f", use_dictionary=5)  # wrong: "use_dictionary"
    pyparq.write_table(data, "f", bloom_filters={"a": "yes"})  # wrong: "bloom_filters"
    pyparq.write_table(data, "f", bloom_filter_layout="middle")  # wrong: "bloom_filter_layout"
    pyparq.write_table(data, "f", data_page_version=2)  # wrong: "data_page_version"
    pyparq.write_table(data, "f", sort_by=[("a", 5)])  # wrong: List item 0
    pyparq.write_table(data, "f", limits=pyparq.Limits())  # wrong: "limits"
    pyparq.ParquetWriter("f", None, colum_encoding="PLAIN")  # wrong: "colum_encoding"
    pyparq.EncryptionProperties(b"0" * 16, algorithm="AES")  # wrong: "algorithm"
    pyparq.BloomOptions(fp=0.1)  # wrong: "fp"
