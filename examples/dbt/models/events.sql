-- Made-up views of one week. Replace it with yours: user_id, url, country, seconds.
SELECT hash(i) % 3000 AS user_id, 'https://example.org/' || (hash(i, 1) % 97) AS url,
       CASE hash(i, 2) % 4 WHEN 0 THEN NULL WHEN 1 THEN 'FR' ELSE 'US' END AS country,
       CAST(hash(i, 3) % 900 AS INTEGER) AS seconds
FROM range(30000) AS made_up(i)
