//! The contract between arrays and backends: storage, guards, requests.
