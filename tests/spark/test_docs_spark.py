"""docs/spark.md: each of its statements has a test, or a reason why no test can show it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col

pytest_plugins = ("spark_session",)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "spark.md"

NO_TEST = "why: "
"""Begins what stands in place of tests."""
UNTRIED = f"{NO_TEST}the page says that nobody has tried it"
RECKONED = f"{NO_TEST}the page says that it is measured or reckoned"

SHOWN: list[tuple[str, str]] = [
    ("reads and writes Parquet in Spark jobs", "test_only_pages_that_can_match_are_planned "
                                               "test_spark_writes_and_pyparq_makes_both_skip"),
    ("You need a folder of Parquet files", f"{NO_TEST}it says what the page takes for granted"),
    ("**1. Install it**", "test_workers_whose_python_has_no_pyparq test_the_page_as_it_stands"),
    ("**2. Check the files.**", "test_another_version_of_pyparq_on_the_workers "
                                "test_workers_whose_python_has_no_pyparq "
                                "test_a_bad_file_is_a_row_and_the_others_go_on"),
    ("**3. Search.**", "test_only_pages_that_can_match_are_planned test_blocks_run"),
    ("**4. Add indexes**", "test_spark_uses_the_bloom_filters_that_it_is_given test_indexes_for_all_files "
                           "test_blocks_run"),
    ("**5. Join small files**", "test_a_compaction_keeps_its_files_for_readers test_blocks_run"),
    ("That is all. Some things", f"{NO_TEST}it says that a list follows"),
    ("The log says what was read", "test_each_job_has_a_line_in_the_log"),
    ("What the line of a read says", "test_the_plan_says_what_is_read test_the_data_source_logs_on_its_worker"),
    ("**If something is wrong**", "test_errors_of_the_system_in_tasks test_a_disk_that_is_full_leaves_nothing "
                                  "test_wrong_columns_are_found_before_a_task_starts "
                                  "test_what_would_change_it_says_so"),
    ("**To undo it all**", "test_spark_reads_every_type_back"),
    ("**Then read on**", f"{NO_TEST}it points to other sections"),
    ("take them by Spark's names, in any case", "test_path_glob_filter test_options_without_an_equal_say_what_to_use"),
    ("| `pathGlobFilter`", "test_path_glob_filter"),
    ("| `recursiveFileLookup`", "test_recursive_file_lookup"),
    ("| `modifiedAfter`", "test_files_of_a_time"),
    ("| `ignoreCorruptFiles`", "test_files_that_cannot_be_read"),
    ("| `ignoreMissingFiles`", "test_files_that_are_gone"),
    ("| `mergeSchema`", "test_merge_schema"),
    ("| `basePath`", "test_options_without_an_equal_say_what_to_use"),
    ("**A declared schema**", "test_a_declared_schema test_a_declared_schema_with_partitions "
                              "test_a_column_called_not_null_that_has_nulls"),
    ("**Where a row comes from**", "test_a_column_of_paths test_spark_tells_where_its_own_rows_come_from"),
    ("The files of a table in Spark's catalog", "test_the_catalog_learns_of_what_is_written "
                                                "test_tables_that_are_not_there"),
    ("Another session that has read the table", f"{NO_TEST}it is about a session of others"),
    ("`add_indexes` changes no rows and no names", f"{NO_TEST}it says that nothing is to be done"),
    ("files.ignoreCorruptFiles`", "test_files_that_cannot_be_read"),
    ("files.ignoreMissingFiles`", "test_files_that_are_gone"),
    ("**Running readers**", "test_a_compaction_keeps_its_files_for_readers test_files_that_are_gone "
                            "test_who_has_listed_before_reads_the_old_files"),
    ("makes a catalog of keys", "test_it_is_the_catalog_of_one_process"),
    ("brings pyspark", "test_an_old_pyspark test_no_pyspark test_an_old_java"),
    ("The same code runs in a classic session", "test_a_classic_session test_connect_clients_that_do_not_see_the_files "
                                                "test_workers_in_processes_of_their_own "
                                                "test_spark_writes_and_pyparq_makes_both_skip"),
    ("`read` plans once", "test_only_pages_that_can_match_are_planned test_only_few_rows_are_answered_without_a_job "
                          "test_the_dataframe_has_at_most_so_many_partitions test_parts_are_not_large "
                          "test_parallelism_is_what_the_session_has_now"),
    ("Above 2,000 files", "test_rows_are_those_of_one_process test_plans_are_those_of_one_process test_counts "
                          "test_each_task_opens_its_share test_errors_are_those_of_one_process test_rewrites"),
    ("Rows that pyparq decodes go from Python", f"{NO_TEST}benchmarks/spark.py measures it"),
    ("**`engine=\"auto\"`**", "test_auto test_little_is_read_by_pyparq test_options_and_places"),
    ("**The expectation**", "test_auto test_shares_that_are_expected test_no_plan_of_each_file "
                            "test_many_files_that_differ"),
    ("**To see which**", "test_auto test_the_plan_of_spark_shows_who_reads"),
    ("**Spark's reader is asked**", "test_damaged_pages_are_errors test_a_file_that_comes_after_the_plan_is_not_read "
                                    "test_a_file_that_is_replaced_is_read_as_spark_does"),
    ("pyparq reads by itself", "test_types test_options_and_places"),
    ("unsigned integers, FLOAT16", "test_types test_files_of_spark"),
    ("columns whose types differ", "test_files_that_differ test_options_and_places"),
    ("encrypted files, BROTLI", "test_encrypted_files test_encodings_and_codecs"),
    ("partition columns other than", "test_partitions"),
    ("tables of Delta Lake and Iceberg, files in a store", "test_options_and_places test_tables_are_read_by_pyparq"),
    ("filters that it cannot write as SQL", "test_options_and_places test_filters"),
    ("`decryption`, `on_error", "test_options_and_places test_files_of_spark"),
    ("**`format(\"pyparq\")` cannot do this**", f"{NO_TEST}a limit of Spark's interface"),
    ("**Filters and columns**", "test_filters_keep_the_rows_that_spark_keeps test_columns"),
    ("**Meaning** is Spark's", "test_a_read_in_spark test_names_follow_the_sessions_case_sensitivity "
                               "test_the_data_source_tells_names_apart_as_its_option_says"),
    ("**Case**", "test_names_that_differ_by_case_are_one_column"),
    ("**Lists with nulls**", "test_a_list_with_nulls_may_have_what_is_not_found"),
    ("**Collations**", "test_collations"),
    ("**`char` and `varchar`**", "test_char_and_varchar"),
    ("**Time zones** are Spark's", "test_filters_are_in_the_session_zone test_reads_writes_and_filters "
                                   "test_python_datetimes_are_in_the_zone_of_python "
                                   "test_many_files_are_planned_in_the_session_zone "
                                   "test_the_data_source_is_told_the_zone"),
    ("**Old calendar.**", "test_values_filters_and_rewrites test_files_of_both_calendars test_a_stream_of_old_files "
                          "test_instants_as_the_jvm_moves_them"),
    ("**Partition columns**", "test_types_of_folders test_filters_on_folders test_what_is_written_is_read "
                              "test_without_a_zone_timestamps_are_text"),
    ("**A DataFrame is a snapshot.**", "test_a_file_that_changes_after_loading"),
    ("**Encrypted files**", "test_encrypted_files_with_keys_made_on_the_workers"),
    ("**Bad files**", "test_a_damaged_file_is_an_error_or_left_out test_notes_of_files_that_workers_leave_out"),
    ("`read`, `count` and `rewrite` take what `where` takes", "test_random_conditions test_columns"),
    ("comparisons of a column with a value", "test_random_conditions"),
    ("logic and nulls", "test_random_conditions test_words_for_nulls_and_text"),
    ("`LIKE` with one `%`", "test_random_conditions test_words_for_nulls_and_text"),
    ("`date(c)`", "test_random_conditions"),
    ("`s.field`, `s['field']`", "test_random_conditions"),
    ("Anything else", "test_what_is_left_to_spark test_rows_are_skipped_by_what_is_understood "
                      "test_errors_say_what_is_wrong"),
    ("In a classic session a `Column`", "test_columns test_words_for_nulls_and_text "
                                        "test_connect_clients_that_do_not_see_the_files"),
    ("**Errors** of tasks", "test_errors_of_tasks_are_our_own test_errors_of_the_system_in_tasks "
                            "test_errors_of_the_users_own_functions_stay_theirs "
                            "test_wrong_columns_are_found_before_a_task_starts"),
    ("int8, int16", "test_rows_and_types_are_those_of_sparks_reader test_values_of_every_type"),
    ("uint8, uint16", "test_values_of_every_type"),
    ("float16 |", "test_values_of_every_type"),
    ("decimal up to 38", "test_values_of_every_type test_decimals_beyond_their_precision"),
    ("timestamps with a zone; without one", "test_values_of_every_type"),
    ("INT96, which is what Spark writes", "test_a_timestamp_is_an_instant test_the_data_source_too"),
    ("time of day", "test_times_of_day_and_durations"),
    ("duration | interval", "test_times_of_day_and_durations"),
    ("fixed-size binary, UUID", "test_uuids_are_bytes test_values_of_every_type"),
    ("JSON, enum, dictionary", "test_values_of_every_type test_annotations_of_other_writers_stay"),
    ("Variant, shredded", "test_variants_are_written_and_read test_variants_that_spark_shreds"),
    ("list, fixed-size list", "test_values_of_every_type"),
    ("intervals that Spark has written", "test_spark_reads_the_same_after_a_rewrite test_random_frames"),
    ("decimals over 38 digits", "test_what_spark_has_no_type_for_names_its_column"),
    ("Nanoseconds that are not whole", "test_nanoseconds_are_not_lost_silently test_nanoseconds_are_cut_off"),
    ("Paths are those of Spark", "test_paths_as_hadoop_writes_them test_braces_are_alternatives "
                                 "test_braces_in_a_store"),
    ("`/data/t`, `file:/data/t`", "test_paths_as_hadoop_writes_them"),
    ("`s3://`, `s3a://`", "test_a_dataset_is_written_and_read test_a_store_whose_package_is_missing_is_named"),
    ("`abfss://`, `abfs://`", "test_settings_are_translated test_a_store_whose_package_is_missing_is_named"),
    ("`gs://`", "test_settings_are_translated test_a_store_whose_package_is_missing_is_named"),
    ("`hdfs://`", UNTRIED),
    ("`dbfs:/t`", "test_paths_as_hadoop_writes_them"),
    ("pyparq makes its requests itself", "test_the_sessions_settings_of_the_store_are_used "
                                         "test_what_the_session_sets_itself_comes_first"),
    ("**S3**", "test_settings_are_translated test_the_sessions_settings_of_the_store_are_used"),
    ("**Azure**", "test_settings_are_translated"),
    ("**Google**", "test_settings_are_translated"),
    ("All else is not translated", "test_the_data_source_writes_and_reads"),
    ("takes the options of `read` as text", "test_options_of_the_data_source "
                                            "test_a_declared_schema_chooses_the_columns "
                                            "test_little_is_read_in_one_partition_of_the_data_source "
                                            "test_the_data_source_writes"),
    ("It does not see the session", "test_the_data_source_tells_names_apart_as_its_option_says "
                                    "test_the_data_source_is_told_the_zone test_without_a_zone_timestamps_are_text "
                                    "test_the_data_source_writes_and_reads"),
    ("The functions are faster", "test_the_report_about_pushed_filters_is_true "
                                 "test_filters_that_spark_pushes_down_still_spoil_later_queries"),
    ("hands the options of a table", "test_rows_are_inserted_into_a_view test_a_write_to_a_table_names_its_folder"),
    ("`CREATE TABLE t USING pyparq OPTIONS", "test_tables_of_sparks_catalog"),
    ("the same for a folder without files", "test_a_write_to_a_table_names_its_folder"),
    ("`CREATE TEMPORARY VIEW", "test_rows_are_inserted_into_a_view"),
    ("`INSERT INTO v`", "test_rows_are_inserted_into_a_view"),
    ("`INSERT INTO t WITH", "test_a_write_to_a_table_names_its_folder"),
    ("the same without a path", "test_what_spark_has_no_way_for"),
    ("`CREATE TABLE t (id bigint)", "test_what_spark_has_no_way_for"),
    ("`overwritePartitions`", "test_what_spark_has_no_way_for"),
    ('`df.write.partitionBy("g")`', "test_what_spark_has_no_way_for"),
    ("FROM pyparq.`/path`", "test_what_spark_has_no_way_for"),
    ("A write to `t` with a path", "test_a_write_to_a_table_names_its_folder"),
    ("Each task writes its files", "test_a_failed_task_leaves_the_old_files "
                                   "test_a_driver_that_is_killed_while_it_commits"),
    ("**Threads**", "test_a_task_encodes_on_one_thread"),
    ("**Modes**", "test_modes test_only_the_partitions_of_the_data_are_replaced "
                  "test_an_overwrite_is_dynamic_where_the_session_says_so"),
    ("**Failures**", "test_a_failed_task_leaves_the_old_files test_a_task_that_outlives_its_write_fails "
                     "test_a_partition_that_came_twice_or_not_at_all test_tasks_that_are_run_again "
                     "test_a_driver_that_is_killed_while_it_commits"),
    ("**Overwriting what is being read**", "test_overwriting_what_is_being_read"),
    ("**Concurrent readers**", "test_a_half_committed_write_is_not_read"),
    ("**On a store**", "test_cut_short_at_each_request test_readers_are_told "
                       "test_an_overwrite_on_s3_that_is_cut_short"),
    ("**Object stores**", "test_a_dataset_is_written_and_read test_a_task_that_fails_leaves_the_old_files "
                          "test_a_commit_that_is_refused test_small_files_are_joined"),
    ("**Tables of Delta Lake", "test_no_writer_touches_a_table_of_another_format test_force_writes_all_the_same "
                               "test_reading_a_table_of_another_format_warns"),
    ("**Order**: `sort_by`", "test_a_global_order_is_a_repartition_by_range_away"),
    ("A DataFrame without rows", "test_no_rows_make_one_typed_file "
                                 "test_a_partitioned_frame_without_rows_leaves_no_partition"),
    ("Spark's own schema is stored too", "test_spark_reads_every_type_back"),
    ("A write obeys the settings", "test_a_call_says_more_than_the_session test_files_are_stored_as_the_session_says "
                                   "test_a_file_has_as_many_rows_as_the_session_says"),
    ("sources.partitionOverwriteMode`", "test_an_overwrite_is_dynamic_where_the_session_says_so"),
    ("files.maxRecordsPerFile`", "test_a_file_has_as_many_rows_as_the_session_says"),
    ("compression.codec`", "test_files_are_stored_as_the_session_says"),
    ("outputTimestampType`", "test_files_are_stored_as_the_session_says test_what_was_read_is_written"),
    ("fieldId.write.enabled`", "test_files_are_stored_as_the_session_says"),
    ("| ignored |", "test_the_table_has_every_setting test_settings_that_are_ignored_change_nothing"),
    ("What is read follows", "test_filters_are_in_the_session_zone test_names_follow_the_sessions_case_sensitivity "
                             "test_types_of_folders test_values_filters_and_rewrites"),
    ("`add_indexes`, `verify` and `rewrite` run now", "test_indexes_for_all_files "
                                                      "test_a_second_run_leaves_all_files_alone "
                                                      "test_a_bad_file_is_a_row_and_the_others_go_on "
                                                      "test_files_that_spark_wrote_can_be_read_after_a_change_in_place"),
    ("`progress=` takes a function", "test_progress_counts_files test_tasks_are_counted "
                                     "test_commands_run_as_spark_jobs"),
    ("`rewrite` plans like `read`", "test_rewrite_joins_small_files_and_sorts "
                                    "test_spark_reads_the_same_after_a_rewrite test_a_rewrite_keeps_the_stored_types "
                                    "test_spark_schema_goes_only_where_it_fits"),
    ("In place, `rewrite` replaces", "test_rows_that_are_added_while_a_rewrite_runs_stay "
                                     "test_a_file_that_changes_while_a_rewrite_runs"),
    ("**Folders of Spark's own streams**", "test_a_folder_of_a_stream_is_what_its_log_says"),
    ("**Bucketed tables**", "test_a_bucketed_table_keeps_its_buckets"),
    ("**Files with the same columns**", "test_defaults_stay"),
    ("`compact` joins", "test_small_files_are_joined test_another_program_at_work"),
    ("**Columns keep** their stored types", "test_small_files_are_joined test_what_spark_has_written"),
    ("**`sort_by`** gives files", "test_rows_are_put_in_order_over_files"),
    ("**`zorder_by`**", "test_a_z_order_lets_each_column_skip test_a_z_order_keeps_near_rows_together"),
    ("**Tasks**: a task makes one file", "test_rows_are_put_in_order_over_files"),
    ("`delete`, `update` and `upsert` change rows", "test_rows_are_deleted test_rows_are_updated test_as_spark_joins "
                                                    "test_a_file_that_another_program_changes test_a_line_in_the_log"),
    ("**`keys=`** takes", "test_keys_of_a_frame test_keys_of_several_columns test_keys_come_in_parts"),
    ("**`upsert`** takes", "test_as_spark_joins test_wrong_keys_are_named test_a_frame_that_reads_the_folder"),
    ("**`expressions=`** of", "test_values_of_spark"),
    ("**Many files** are not opened", "test_the_driver_does_not_open_many_files"),
    ("**A file of which no row is left**", "test_a_file_without_rows_goes"),
    ("**Columns with a DEFAULT** that", "test_defaults_are_not_passed_over"),
    ("**The catalog** of the folder is", "test_the_catalog_goes"),
    ("**Folders of Delta Lake and Iceberg** are", "test_what_is_refused"),
    ("`explain` shows what it does", "test_a_z_order_lets_each_column_skip"),
    ("Each batch is one commit", "test_a_query_that_is_stopped_and_started_again"),
    ("Spark repeats a batch", "test_a_batch_that_spark_repeats_is_not_written_again test_committing_twice"),
    ("**A batch that fails**", "test_a_batch_that_fails_leaves_nothing "
                               "test_what_a_crash_left_goes_with_the_next_batch"),
    ("**Output modes**", "test_each_batch_of_a_complete_result_replaces_the_last"),
    ("The files of a stream can be joined", "test_files_of_a_stream_are_joined_while_it_runs"),
    ("For anything else, such as", "test_batches_written_by_a_function_of_the_user"),
    ("The stream reads each file", "test_files_that_arrive_are_read_once "
                                    "test_partition_folders_and_a_stream_to_a_stream"),
    ("**Order and offsets.**", "test_each_file_is_given_out_once test_names_tell_what_was_given_out "
                               "test_too_many_names test_a_rename_is_when_a_local_file_comes "
                               "test_files_that_come_late"),
    ("a batch that was not finished", "test_files_that_arrive_are_read_once test_a_file_of_a_batch_that_is_gone "
                                      "test_over_connect test_on_a_standalone_master"),
    ("`maxFilesPerTrigger` limits", "test_a_limit_and_equal_times test_files_that_come_late"),
    ("**A file that cannot be read** ends", "test_what_a_stream_refuses"),
    ("Where no schema is given", "test_files_that_arrive_are_read_once"),
    ("Spark's own file stream", "test_sparks_stream_reads_files_of_ours"),
    ("Measured on one core", RECKONED),
    ("**Reading** scales", "test_plans_are_those_of_one_process"),
    ("**Planning** spreads", "test_each_task_opens_its_share"),
    ("**Lookups in a store**", RECKONED),
    ("**Committing** on a store", RECKONED),
    ("**Adding indexes and verifying**", "test_a_second_run_leaves_all_files_alone test_groups_of_similar_size"),
]  # fmt: skip
"""A few words of each statement, and its tests. The first entry whose words a statement has is its own."""


def statements() -> list[str]:
    """The bullets, rows of tables and paragraphs of the page, without code and headings."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n", re.sub(r"```.*?```|<!--.*?-->", "", PAGE.read_text(), flags=re.DOTALL)):
        if block.lstrip().startswith("|"):
            found += block.strip().splitlines()[2:]
        elif block.strip() and not block.lstrip().startswith("#"):
            found += [
                " ".join(part.split()) for part in re.split(r"^(?=- )", block, flags=re.MULTILINE) if part.strip()
            ]
    return found


def test_every_statement_is_shown() -> None:
    tests = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
    }
    found, used = statements(), set[str]()
    assert len(found) > 120
    for statement in found:
        words = next((words for words, _ in SHOWN if words in statement), None)
        assert words is not None, f"no test is named for: {statement}"
        used.add(words)
    assert not [words for words, _ in SHOWN if words not in used]
    for words, shown_by in SHOWN:
        if not shown_by.startswith(NO_TEST):
            assert not [name for name in shown_by.split() if name not in tests], words


# ---- statements that no other module tests


@pytest.mark.slow
@pytest.mark.spark
def test_words_for_nulls_and_text(usual: Any, ps: Any, tmp_path: Path) -> None:
    usual.sql("""
        select *, i > 1 b from values (1, 'a_b', 1.5D), (2, 'axb', double('nan')), (3, null, null), (null, 'A%', -1.0D)
        as t(i, s, d)
    """).coalesce(1).write.parquet(str(tmp_path / "t"))
    own = usual.read.parquet(str(tmp_path / "t"))
    for condition in (
        "s like 'a!_%' escape '!'", "nvl(i, 7) = 7", "ifnull(i, 7) = 1", "coalesce(i, 0) >= 1", "isnan(d)",
        "isnotnull(s) and not isnan(d)", "startswith(s, 'a')", "b is true", "b is not true", "! (i = 1)", "i <=> null",
        "2 < i", "isnull(s)", "s in ('A%', 'axb')",
    ):  # fmt: skip
        assert ps.count(usual, tmp_path / "t", condition) == own.where(condition).count(), condition
    assert ps.count(usual, tmp_path / "t", own["i"] > 1) == 2  # the column's name counts, not its DataFrame


@pytest.mark.slow
@pytest.mark.spark
def test_a_task_encodes_on_one_thread(usual: Any, ps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyparq.spark.writing import WriteRequest, write_task

    seen: list[Any] = []
    make = pyparq.WriteOptions.make.__func__  # type: ignore[attr-defined]

    def recorded(cls: Any, given: Any, *hints: Any) -> Any:
        made = make(cls, given, *hints)
        seen.append(made.use_threads)
        return made

    monkeypatch.setattr(pyparq.WriteOptions, "make", classmethod(recorded))
    schema = pa.schema([("id", pa.int64())])
    for number, given in enumerate(({}, {"use_threads": True})):
        seen.clear()
        job = WriteRequest(str(tmp_path / str(number)), "error", schema, (), given).begun()
        write_task([pa.RecordBatch.from_pydict({"id": [1]}, schema)], job, 0, "task-0")
        assert seen[-1] is bool(given)


@pytest.mark.slow
@pytest.mark.spark
def test_files_of_a_stream_are_joined_while_it_runs(usual: Any, ps: Any, tmp_path: Path) -> None:
    ps.register(usual)

    def run(first: int) -> None:
        usual.range(first, first + 10).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
        stream = usual.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        writer = stream.writeStream.format("pyparq").trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "check")).start(str(tmp_path / "out")).awaitTermination()

    run(0)
    run(10)
    records = sorted(path.name for path in (tmp_path / "out").glob("_pyparq_stream-*/*.json"))
    assert len(records) == 2
    ps.rewrite(usual, tmp_path / "out", partitions=1)
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 1
    assert sorted(path.name for path in (tmp_path / "out").glob("_pyparq_stream-*/*.json")) == records
    run(20)
    assert sorted(pyparq.read_table(tmp_path / "out")["id"].to_pylist()) == list(range(30))


@pytest.mark.spark
def test_sparks_stream_reads_files_of_ours(usual: Any, ps: Any, tmp_path: Path) -> None:
    pyparq.write_table({"id": [1, 2, 3], "s": ["a", None, "ü"]}, tmp_path / "in.parquet", bloom_filters=["id"])
    (tmp_path / "in").mkdir()
    (tmp_path / "in.parquet").rename(tmp_path / "in" / "1.parquet")
    stream = usual.readStream.schema("id long, s string").parquet(str(tmp_path / "in"))
    writer = stream.writeStream.format("parquet").trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "check")).start(str(tmp_path / "out")).awaitTermination()
    rows = pq.read_table(tmp_path / "out").sort_by("id").to_pylist()
    assert rows == [{"id": 1, "s": "a"}, {"id": 2, "s": None}, {"id": 3, "s": "ü"}]
    assert pyparq.dataset(tmp_path / "out").count(col("id") > 1) == 2
