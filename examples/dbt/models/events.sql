-- The events of one week: replace it with yours.
SELECT user_id, url, country, likes FROM read_parquet('{{ var("events") }}')
