-- Prints the table @s.@t as tab-separated lines: first the column names, then the
-- rows in the order of the primary key, or of all columns where there is none.
-- NULL is \N; backslash, tab, line feed, carriage return and NUL are \\ \t \n \r \0.
-- Bytes, geometry (SRID and WKB as stored) and vectors are upper-case hex, BIT is its
-- number, FLOAT is shown with the digits of the double it equals, TIMESTAMP is UTC. What
-- is longer than 4096 bytes stands as sha256:DIGEST:LENGTH, taken before escaping.
SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES', SESSION group_concat_max_len = 1000000, SESSION time_zone = '+00:00';
SELECT GROUP_CONCAT(column_name ORDER BY ordinal_position SEPARATOR '	')
FROM information_schema.columns WHERE table_schema = @s AND table_name = @t;
SELECT GROUP_CONCAT(CONCAT(
    'IFNULL(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(',
    'IF(LENGTH(', e, ') > 4096, CONCAT(''sha256:'', SHA2(', e, ', 256), '':'', LENGTH(', e, ')), ', e, ')',
    ',''\'',''\\''),CHAR(9 USING utf8mb4),''\t''),CHAR(10 USING utf8mb4),''\n''),CHAR(13 USING utf8mb4),''\r''),CHAR(0 USING utf8mb4),''\0''),''\N'')')
  ORDER BY p SEPARATOR ', ') INTO @list
FROM (
  SELECT ordinal_position AS p, CASE
      WHEN data_type IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob', 'vector', 'geometry', 'point', 'linestring', 'polygon', 'multipoint',
        'multilinestring', 'multipolygon', 'geomcollection', 'geometrycollection') THEN CONCAT('HEX(', q, ')')
      WHEN data_type = 'bit' THEN CONCAT('CAST(CAST(', q, ' + 0 AS UNSIGNED) AS CHAR)')
      WHEN data_type = 'float' THEN CONCAT('CAST(CAST(', q, ' AS DOUBLE) AS CHAR)')
      ELSE CONCAT('CAST(', q, ' AS CHAR CHARACTER SET utf8mb4)') END AS e
  FROM (SELECT ordinal_position, data_type, CONCAT('`', REPLACE(column_name, '`', '``'), '`') AS q
    FROM information_schema.columns WHERE table_schema = @s AND table_name = @t) c) x;
SELECT COALESCE(
    (SELECT GROUP_CONCAT(CONCAT('`', REPLACE(column_name, '`', '``'), '`') ORDER BY seq_in_index) FROM information_schema.statistics
      WHERE table_schema = @s AND table_name = @t AND index_name = 'PRIMARY'),
    (SELECT GROUP_CONCAT(ordinal_position ORDER BY ordinal_position) FROM information_schema.columns WHERE table_schema = @s AND table_name = @t)) INTO @order;
SET @query = CONCAT('SELECT ', @list, ' FROM `', REPLACE(@s, '`', '``'), '`.`', REPLACE(@t, '`', '``'), '` ORDER BY ', @order);
PREPARE q FROM @query;
EXECUTE q;
