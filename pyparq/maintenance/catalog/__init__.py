"""``index_dataset``: the catalog beside a dataset is built and kept up to date."""
