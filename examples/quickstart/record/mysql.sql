-- What the MySQL recordings contain. record.sh runs the sections that a recording
-- names, each in a session of its own; a section needs nothing of another one unless
-- it says so. Every section keeps to schemas of its own. The MariaDB recordings take
-- the sections that mariadb.sql does not have from here.

-- section numbers
SET NAMES utf8mb4; SET time_zone = '+00:00'; SET sql_mode = '';
CREATE DATABASE numbers CHARACTER SET utf8mb4; USE numbers;

CREATE TABLE ints (
  id INT PRIMARY KEY,
  t TINYINT, tu TINYINT UNSIGNED, s SMALLINT, su SMALLINT UNSIGNED,
  m MEDIUMINT, mu MEDIUMINT UNSIGNED, i INT, iu INT UNSIGNED, b BIGINT, bu BIGINT UNSIGNED,
  flag BOOLEAN, z INT(5) ZEROFILL);
INSERT INTO ints VALUES
  (1, -128, 0, -32768, 0, -8388608, 0, -2147483648, 0, -9223372036854775808, 0, 0, 0),
  (2, 127, 255, 32767, 65535, 8388607, 16777215, 2147483647, 4294967295, 9223372036854775807, 18446744073709551615, 1, 42),
  (3, -1, 128, -1, 32768, -1, 8388608, -1, 2147483648, -1, 9223372036854775808, TRUE, 123456),
  (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (5, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1);
UPDATE ints SET tu = 200, su = 40000, mu = 9000000, iu = 3000000000, bu = 10000000000000000000 WHERE id = 5;

-- A small value in an unsigned key, and the largest one.
CREATE TABLE bigkeys (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT);
INSERT INTO bigkeys VALUES (3355, 1), (9223372036854775808, 2), (18446744073709551614, 3);
UPDATE bigkeys SET id = 18446744073709551613 WHERE v = 3;
DELETE FROM bigkeys WHERE id = 9223372036854775808;

CREATE TABLE decimals (
  id INT PRIMARY KEY,
  d1 DECIMAL(1,0), d11 DECIMAL(1,1), d10 DECIMAL(10), d92 DECIMAL(9,2), d124 DECIMAL(12,4), d134 DECIMAL(13,4),
  du DECIMAL(18,9) UNSIGNED, d650 DECIMAL(65,0), d6530 DECIMAL(65,30), d3030 DECIMAL(30,30));
INSERT INTO decimals VALUES
  (1, 9, 0.9, 9999999999, 9999999.99, 1.23, 1.23, 999999999.999999999, REPEAT('9', 65),
   CONCAT(REPEAT('9', 35), '.', REPEAT('9', 30)), CONCAT('0.', REPEAT('9', 30))),
  (2, -9, -0.9, -9999999999, -9999999.99, -1.23, -1.23, 0, CONCAT('-', REPEAT('9', 65)),
   CONCAT('-', REPEAT('9', 35), '.', REPEAT('9', 30)), CONCAT('-0.', REPEAT('9', 30))),
  (3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
  (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (5, 1, 0.1, 1000000000, 0.01, 0.0001, 100000000.0001, 0.000000001, 1000000000, 0.000000000000000000000000000001, -0.000000000000000000000000000001),
  (6, -1, -0.1, -1, -0.01, -0.0001, -0.0001, 1, -1, '-12345678901234567890.123456789', 0.5);
UPDATE decimals SET d6530 = -d6530 WHERE id IN (5, 6);

CREATE TABLE floats (id INT PRIMARY KEY, f FLOAT, fu FLOAT UNSIGNED, fd FLOAT(10,3), d DOUBLE, du DOUBLE UNSIGNED, dd DOUBLE(15,4));
INSERT INTO floats VALUES
  (1, 3.14, 3.14, 3.14, 3.141592653589793, 3.141592653589793, 3.1415),
  (2, -3.402823466e38, 3.402823466e38, -9999999.999, -1.7976931348623157e308, 1.7976931348623157e308, -99999999999.9999),
  (3, 1.175494351e-38, 1.175494351e-38, 0.001, 2.2250738585072014e-308, 4.9e-324, 0.0001),
  (4, 0, 0, 0, -0e0, 0, 0), (5, NULL, NULL, NULL, NULL, NULL, NULL),
  (6, 16777216, 16777215, 1, 9007199254740993, 0.1, 0.3);
UPDATE floats SET f = f / 3, d = d / 3 WHERE id IN (1, 6);

CREATE TABLE bits (
  id INT PRIMARY KEY, b1 BIT(1), b2 BIT(2), b7 BIT(7), b8 BIT(8), b9 BIT(9), b16 BIT(16), b17 BIT(17), b24 BIT(24), b25 BIT(25),
  b32 BIT(32), b33 BIT(33), b40 BIT(40), b48 BIT(48), b56 BIT(56), b63 BIT(63), b64 BIT(64));
INSERT INTO bits VALUES
  (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
  (2, 1, 3, 127, 255, 511, 65535, 131071, 16777215, 33554431, 4294967295, 8589934591, 1099511627775, 281474976710655,
   72057594037927935, 9223372036854775807, 18446744073709551615),
  (3, 1, 2, 64, 128, 256, 258, 65536, 65537, 16777216, 16909060, 4294967296, 4328719365, 1108152157446, 283686952306183,
   4611686018427387905, 9223372036854775809),
  (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

-- section mysqltypes
-- What MariaDB 10.11 does not have.
SET NAMES utf8mb4; CREATE DATABASE mysqltypes; USE mysqltypes;
CREATE TABLE wide_chars (id INT PRIMARY KEY, v VARCHAR(40) CHARACTER SET gb18030, c CHAR(10) CHARACTER SET gb18030);
INSERT INTO wide_chars VALUES (1, '中文€😀', '😀'), (2, '', NULL);
CREATE TABLE vectors (id INT PRIMARY KEY, v VECTOR(4), w VECTOR);
INSERT INTO vectors VALUES
  (1, STRING_TO_VECTOR('[1, -2.5, 3.25e10, 0]'), STRING_TO_VECTOR('[0.1]')),
  (2, NULL, NULL),
  (3, STRING_TO_VECTOR('[1.2e-38, 3.4e38, -0.1, 0.3]'), STRING_TO_VECTOR('[1,2,3,4,5,6,7,8,9]'));
UPDATE vectors SET v = STRING_TO_VECTOR('[4, 3, 2, 1]') WHERE id = 2;

-- section times
SET NAMES utf8mb4; SET time_zone = '+00:00'; SET sql_mode = '';
CREATE DATABASE times CHARACTER SET utf8mb4; USE times;

CREATE TABLE years (id INT PRIMARY KEY, y YEAR);
INSERT INTO years VALUES (1, 0), (2, 1901), (3, 2155), (4, NULL), (5, 2024), (6, '0000');

CREATE TABLE dates (id INT PRIMARY KEY, d DATE, dn DATE NOT NULL, dt DATETIME NOT NULL, ts TIMESTAMP NOT NULL);
INSERT INTO dates VALUES
  (1, '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00'),
  (2, '1000-01-01', '9999-12-31', '9999-12-31 23:59:59', '2038-01-19 03:14:07'),
  (3, '0002-11-30', '0022-11-30', '0002-11-30 08:05:43', '1970-01-01 00:00:01'),
  (4, '0222-11-30', '0001-01-01', '0022-11-30 08:05:43', '2025-02-17 18:11:25'),
  (5, '2020-00-10', '2020-10-00', '2020-00-00 01:02:03', '2024-02-29 23:59:59'),
  (6, NULL, '0000-01-01', '0222-11-30 08:05:43', '2000-01-01');
SET sql_mode = 'ALLOW_INVALID_DATES';
INSERT INTO dates VALUES (7, '2020-02-31', '2023-02-29', '2021-04-31 12:00:00', '2020-06-30 23:59:59');
SET sql_mode = '';

CREATE TABLE datetimes (id INT PRIMARY KEY, d0 DATETIME, d1 DATETIME(1), d2 DATETIME(2), d3 DATETIME(3), d4 DATETIME(4), d5 DATETIME(5), d6 DATETIME(6));
INSERT INTO datetimes VALUES
  (1, '2024-02-29 12:34:56', '2024-02-29 12:34:56.1', '2024-02-29 12:34:56.12', '2024-02-29 12:34:56.123', '2024-02-29 12:34:56.1234', '2024-02-29 12:34:56.12345', '2024-02-29 12:34:56.123456'),
  (2, '1000-01-01', '1000-01-01', '1000-01-01', '1000-01-01', '1000-01-01', '1000-01-01', '1000-01-01'),
  (3, '9999-12-31 23:59:59', '9999-12-31 23:59:59.9', '9999-12-31 23:59:59.99', '9999-12-31 23:59:59.999', '9999-12-31 23:59:59.9999', '9999-12-31 23:59:59.99999', '9999-12-31 23:59:59.999999'),
  (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (5, '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00'),
  (6, '2024-01-01 00:00:00', '2024-01-01 00:00:00.0', '2024-01-01 00:00:00.01', '2024-01-01 00:00:00.001', '2024-01-01 00:00:00.0001', '2024-01-01 00:00:00.00001', '2024-01-01 00:00:00.000001');

CREATE TABLE clocks (id INT PRIMARY KEY, t0 TIME, t1 TIME(1), t2 TIME(2), t3 TIME(3), t4 TIME(4), t5 TIME(5), t6 TIME(6));
INSERT INTO clocks VALUES
  (1, '-00:00:01', '-00:00:00.1', '-00:00:00.01', '-00:00:00.001', '-00:00:00.0001', '-00:00:00.00001', '-00:00:00.000001'),
  (2, '-838:59:59', '-838:59:59', '-838:59:59', '-838:59:59', '-838:59:59', '-838:59:59', '-838:59:59'),
  (3, '838:59:59', '838:59:58.9', '838:59:58.99', '838:59:58.999', '838:59:58.9999', '838:59:58.99999', '838:59:58.999999'),
  (4, '-507:48:27', '-12:34:56.7', '-12:34:56.78', '-12:34:56.789', '-12:34:56.7890', '-12:34:56.78901', '-12:34:56.789012'),
  (5, '00:00:00', '00:00:00', '00:00:00', '00:00:00', '00:00:00', '00:00:00', '00:00:00'),
  (6, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (7, '12:34:56', '12:34:56.1', '12:34:56.12', '12:34:56.123', '12:34:56.1234', '12:34:56.12345', '12:34:56.123456'),
  (8, '-00:00:59', '-00:00:59.9', '-00:01:00.00', '-00:00:59.999', '-01:00:00', '-00:59:59.99999', '-00:59:59.999999');
UPDATE clocks SET t6 = '-00:00:00.5', t2 = '-00:00:00.99', t4 = '-00:00:01.0001' WHERE id = 5;

CREATE TABLE stamps (id INT PRIMARY KEY, s0 TIMESTAMP NULL, s1 TIMESTAMP(1) NULL, s2 TIMESTAMP(2) NULL, s3 TIMESTAMP(3) NULL, s4 TIMESTAMP(4) NULL,
  s5 TIMESTAMP(5) NULL, s6 TIMESTAMP(6) NULL, touched TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3));
SET timestamp = 1739815885.123456;
INSERT INTO stamps (id, s0, s1, s2, s3, s4, s5, s6) VALUES
  (1, '1970-01-01 00:00:01', '1970-01-01 00:00:01.1', '1970-01-01 00:00:01.01', '1970-01-01 00:00:01.001', '1970-01-01 00:00:01.0001', '1970-01-01 00:00:01.00001', '1970-01-01 00:00:01.000001'),
  (2, '2038-01-19 03:14:07', '2038-01-19 03:14:07.9', '2038-01-19 03:14:07.99', '2038-01-19 03:14:07.999', '2038-01-19 03:14:07.9999', '2038-01-19 03:14:07.99999', '2038-01-19 03:14:07.999999'),
  (3, 0, 0, 0, 0, 0, 0, 0), (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SET time_zone = '+05:30';
INSERT INTO stamps (id, s0, s3, s6) VALUES (5, '2025-02-17 18:11:25', '2025-02-17 18:11:25.5', '2025-02-17 18:11:25.654321');
SET time_zone = '-08:00', timestamp = 1739902285.5;
UPDATE stamps SET s0 = '2025-02-17 18:11:25' WHERE id = 4;
SET time_zone = '+00:00', timestamp = DEFAULT;

-- section text
SET NAMES utf8mb4; SET time_zone = '+00:00'; SET sql_mode = '';
CREATE DATABASE text CHARACTER SET utf8mb4; USE text;

CREATE TABLE charsets (
  id INT PRIMARY KEY,
  u4 VARCHAR(40) CHARACTER SET utf8mb4, u4bin VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, u3 VARCHAR(40) CHARACTER SET utf8mb3,
  l1 VARCHAR(40) CHARACTER SET latin1, l2 VARCHAR(40) CHARACTER SET latin2, a VARCHAR(40) CHARACTER SET ascii,
  gbk VARCHAR(40) CHARACTER SET gbk, gb2312 VARCHAR(40) CHARACTER SET gb2312, big5 VARCHAR(40) CHARACTER SET big5,
  sjis VARCHAR(40) CHARACTER SET sjis, ujis VARCHAR(40) CHARACTER SET ujis, euckr VARCHAR(40) CHARACTER SET euckr,
  cp1251 VARCHAR(40) CHARACTER SET cp1251, koi8r VARCHAR(40) CHARACTER SET koi8r,
  ucs2 VARCHAR(40) CHARACTER SET ucs2, utf16 VARCHAR(40) CHARACTER SET utf16, utf16le VARCHAR(40) CHARACTER SET utf16le, utf32 VARCHAR(40) CHARACTER SET utf32,
  cgbk CHAR(10) CHARACTER SET gbk, cucs2 CHAR(10) CHARACTER SET ucs2, tl1 TEXT CHARACTER SET latin1, tgbk TEXT CHARACTER SET gbk, tutf16 MEDIUMTEXT CHARACTER SET utf16);
INSERT INTO charsets VALUES
  (1, 'grün 日本 😀', 'A a Ä', 'žluť 男', 'é € ß ÿ', 'Łódź', 'plain', '中文测试', '中文', '繁體字', 'テスト', 'テスト', '한국어', 'Привет', 'Привет',
   'ucs2 中文', 'utf16 😀', 'le 😀', '32 😀', '中文', '中文', 'é € ß', '中文测试', 'utf16 😀 中文'),
  (2, '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', '', ''),
  (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  -- 0x8140 style codes whose second byte is a backslash or a quote in ASCII.
  (4, 'x', 'x', 'x', 'x', 'x', 'x', _gbk 0x815C8140, 'x', _big5 0xA55C, _sjis 0x835C, 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', _gbk 0x815C, 'x', 'x', _gbk 0x815C, 'x');
UPDATE charsets SET l1 = 'ÀÿŒ', gbk = '改', u4 = '👩‍👩‍👧‍👦' WHERE id = 1;

CREATE TABLE strings (id INT PRIMARY KEY, c CHAR(10), c255 CHAR(255), v VARCHAR(10), v255 VARCHAR(255) CHARACTER SET latin1, v256 VARCHAR(256) CHARACTER SET latin1, v300 VARCHAR(300), t TEXT);
INSERT INTO strings VALUES
  (1, 'a', 'ä', 'trail  ', 'x', REPEAT('y', 256), REPEAT('ž', 300), 'plain'),
  (2, 'trail  ', REPEAT('😀', 255), '', REPEAT('é', 255), 'é', '', ''),
  (3, 'a\0b', '', 'a\0b', 'tab\there', 'line\nbreak\r\n', 'back\\slash', 'quote '' " `'),
  (4, NULL, NULL, 'NULL', '\\N', 'null', '%_', NULL),
  (5, ' lead', 'q', '0', '0x00', 'true', '1e5', CONCAT('nul', CHAR(0), 'bell', CHAR(7), 'del', CHAR(127)));

CREATE TABLE binaries (id INT PRIMARY KEY, b16 BINARY(16), b5 BINARY(5), b4 BINARY(4), vb VARBINARY(16), vb300 VARBINARY(300), cb CHAR(8) CHARACTER SET binary, vcb VARCHAR(8) CHARACTER SET binary);
INSERT INTO binaries VALUES
  (1, X'6CCD780CBABA1026956454FDA9C87800', 'a', X'01020000', X'01020000', X'00', 'a', 'a'),
  (2, X'00000000000000000000000000000000', X'', X'00000000', X'', X'', '', ''),
  (3, X'FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF', X'FF00FF00FF', X'20202020', X'2020', REPEAT(X'FE', 300), X'80FF', X'80FF00'),
  (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
UPDATE binaries SET b5 = 'b' WHERE id = 1;
CREATE TABLE uuids (id BINARY(16) PRIMARY KEY, v INT);
INSERT INTO uuids VALUES (X'11112222333344445555666677778800', 1), (X'11112222333344445555666600000000', 2), (X'20202020202020202020202020202020', 3);
UPDATE uuids SET v = 20 WHERE id = X'11112222333344445555666600000000';
DELETE FROM uuids WHERE id = X'11112222333344445555666677778800';

CREATE TABLE lobs (id INT PRIMARY KEY, tb TINYBLOB, b BLOB, mb MEDIUMBLOB, lb LONGBLOB, tt TINYTEXT, t TEXT, mt MEDIUMTEXT, lt LONGTEXT);
INSERT INTO lobs VALUES
  (1, X'00FF', X'00FF', X'00FF', X'00FF', 'ä', 'ä', 'ä', 'ä'), (2, '', '', '', '', '', '', '', ''), (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (4, REPEAT(X'A0', 255), REPEAT(X'A1', 256), REPEAT(X'A2', 257), REPEAT(X'A3', 300), REPEAT('t', 255), REPEAT('ß', 200), REPEAT('m', 256), REPEAT('l', 257));

CREATE TABLE enums (
  id INT PRIMARY KEY, e ENUM('active','inactive','pending') NOT NULL, en ENUM('a','b'), s SET('r','w','x') NOT NULL, sn SET('one','two'),
  el ENUM('é','ß') CHARACTER SET latin1, eg ENUM('中','文') CHARACTER SET gbk, sg SET('中','文','字') CHARACTER SET gbk,
  eq ENUM('it''s','a,b','"q"','back\\slash',''), sq SET('it''s','"q"','sp ace'));
INSERT INTO enums VALUES
  (1, 'active', 'a', 'r', 'one', 'é', '中', '中,字', 'it''s', 'it''s,"q"'), (2, 'pending', 'b', 'r,w,x', 'one,two', 'ß', '文', '文', 'a,b', 'sp ace'),
  (3, 'inactive', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL), (4, 'zzz', 'zzz', 'zzz', '', '', '', '', '', ''), (5, 'active', 'a', 'x,r', 'two', 'é', '文', '', 'back\\slash', '"q"');
UPDATE enums SET e = 'pending', s = 'w' WHERE id = 5;
UPDATE enums SET e = 0 WHERE id = 1;

-- More than 255 labels make an index of two bytes; 64 members fill a set.
SET SESSION group_concat_max_len = 100000;
SELECT GROUP_CONCAT(QUOTE(CONCAT('label', n)) ORDER BY n) INTO @labels FROM (WITH RECURSIVE seq(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < 300) SELECT n FROM seq) q;
SELECT GROUP_CONCAT(QUOTE(CONCAT('m', n)) ORDER BY n) INTO @members FROM (WITH RECURSIVE seq(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < 64) SELECT n FROM seq) q;
SET @ddl = CONCAT('CREATE TABLE wide_enums (id INT PRIMARY KEY, e ENUM(', @labels, '), s SET(', @members, '))');
PREPARE s FROM @ddl; EXECUTE s; DEALLOCATE PREPARE s;
INSERT INTO wide_enums VALUES (1, 'label1', 'm1'), (2, 'label255', 'm8,m9'), (3, 'label256', 'm64'), (4, 'label300', 'm1,m64'), (5, NULL, NULL), (6, 'none', 18446744073709551615);

CREATE TABLE `客户` (`编号` INT PRIMARY KEY, `имя` VARCHAR(20), `select` INT, `a b` INT, `back``tick` INT, `quo"te` INT);
INSERT INTO `客户` VALUES (1, 'Иван', 1, 2, 3, 4), (2, '李', NULL, NULL, NULL, NULL);
UPDATE `客户` SET `имя` = 'Пётр' WHERE `编号` = 1;

-- section large
-- A value past 65535 bytes: its length takes three bytes, its event is far above the usual size.
SET NAMES utf8mb4; SET sql_mode = '';
CREATE DATABASE large CHARACTER SET utf8mb4; USE large;
CREATE TABLE lobs (id INT PRIMARY KEY, mb MEDIUMBLOB, lt LONGTEXT CHARACTER SET latin1, j JSON);
INSERT INTO lobs (id, mb) VALUES (1, REPEAT(X'00FFA5', 22000));
INSERT INTO lobs (id, lt) VALUES (2, REPEAT('0123456789abcdef', 40));

-- section json
SET NAMES utf8mb4; SET time_zone = '+00:00'; SET sql_mode = '';
CREATE DATABASE docs CHARACTER SET utf8mb4; USE docs;
CREATE TABLE j (id INT PRIMARY KEY, doc JSON, note VARCHAR(60));
INSERT INTO j VALUES
  (1, NULL, 'SQL NULL'), (2, 'null', 'JSON null'), (3, 'true', 'literal'), (4, 'false', 'literal'), (5, '""', 'empty string'), (6, '{}', 'empty object'), (7, '[]', 'empty array'),
  (8, '{"a": 1, "a": 2, "b": {"c": 1, "c": [1]}}', 'duplicate keys'),
  (9, '[0, -1, 32767, -32768, 32768, 65535, 65536, -32769, 2147483647, -2147483648, 2147483648, 4294967295, 9223372036854775807, -9223372036854775808, 9223372036854775808, 18446744073709551615]', 'integers'),
  (10, '[18446744073709551616, -9223372036854775809, 1e308, -1.7976931348623157e308, 2.2250738585072014e-308, 0.1, -0.0, 1.0, 100.0, 123456789012345678901234567890]', 'doubles'),
  (11, '"男 😀 \\u0000 \\u001f \\" \\\\ \\/ \\n\\t"', 'escapes'),
  (12, '{"k1":"男","k2":"18606520112","cardNumber":"","k3":"Peter"}', 'empty member'),
  (13, '{"": 1, "b": 2, "aa": 3, "a": 4, "é": 5, "😀": 6}', 'key order'),
  (14, CONCAT(REPEAT('[', 90), '1', REPEAT(']', 90)), 'deep array'), (15, CONCAT(REPEAT('{"a":', 60), 'null', REPEAT('}', 60)), 'deep object'),
  (16, JSON_OBJECT('l127', REPEAT('a', 127), 'l128', REPEAT('b', 128), 'l300', REPEAT('ß', 150)), 'string lengths'),
  (17, JSON_ARRAY(REPEAT('c', 16383), REPEAT('d', 16384)), 'string lengths of two and three bytes'),
  (18, '42', 'scalar'), (19, '-1.5', 'scalar'), (20, '"x"', 'scalar'), (21, '18446744073709551615', 'scalar');
INSERT INTO j VALUES
  (30, JSON_OBJECT('d', CAST(1.10 AS DECIMAL(10,2)), 'big', CAST('-12345678901234567890123456789012345.000000000000000000000000000001' AS DECIMAL(65,30)), 'zero', CAST(0 AS DECIMAL(5,3))), 'decimals'),
  (31, JSON_OBJECT('dt', CAST('2024-02-29 12:34:56' AS DATETIME), 'dt6', CAST('0022-11-30 08:05:43.000001' AS DATETIME(6)), 'date', CAST('2024-02-29' AS DATE), 'zero', CAST('0000-00-00' AS DATE)), 'opaque dates'),
  (32, JSON_ARRAY(CAST('-00:00:00.000001' AS TIME(6)), CAST('838:59:59' AS TIME), CAST('-838:59:59' AS TIME), CAST('12:34:56.5' AS TIME(1)), TIMESTAMP'2024-01-01 00:00:00.25'), 'opaque times'),
  (33, JSON_ARRAY(X'00FF80', CAST('bin' AS BINARY), CAST('' AS BINARY)), 'opaque binary'), (34, JSON_ARRAY(b'101', TRUE, NULL, 1 = 1), 'bit and booleans'),
  (35, JSON_OBJECT('p', ST_GeomFromText('POINT(1 2)')), 'geometry as an object'), (36, JSON_ARRAY(CAST(2147483648 AS UNSIGNED), CAST(-1 AS SIGNED), 1.5, 1e0), 'SQL numbers');
DELIMITER //
CREATE FUNCTION as_json(v BIGINT UNSIGNED) RETURNS JSON DETERMINISTIC NO SQL RETURN CAST(v AS JSON)//
DELIMITER ;
INSERT INTO j VALUES (37, JSON_OBJECT('value', as_json(2147483648), 'max', as_json(18446744073709551615)), 'unsigned through a routine');
CREATE TABLE opaque (id INT PRIMARY KEY, y YEAR, e ENUM('a','b'), s SET('x','y'), b BIT(12), v VARBINARY(10), bl BLOB, j JSON);
INSERT INTO opaque VALUES (1, 2024, 'b', 'x,y', 2730, X'0001', X'FFFE', NULL);
UPDATE opaque SET j = JSON_OBJECT('y', y, 'e', e, 's', s, 'b', b, 'v', v, 'bl', bl);
CREATE TABLE remarks (id INT PRIMARY KEY, a INT, b INT, c INT, d INT, remark JSON);
INSERT INTO remarks VALUES (1, 1, 2, 3, 4, NULL), (2, -1, NULL, 70000, -70000, '{}');
UPDATE remarks SET remark = JSON_OBJECT('0-1000', a, '1000-2000', b, '2000-3000', c, '3000', d);
UPDATE j SET doc = JSON_SET(doc, '$.k3', 'Paul', '$.k4', JSON_ARRAY(1, 2)) WHERE id = 12;
DELETE FROM j WHERE id = 20;
-- A column added as NOT NULL holds a JSON null in the rows that were there.
CREATE TABLE added (id INT PRIMARY KEY, v INT);
INSERT INTO added VALUES (1, 1), (2, 2);
ALTER TABLE added ADD COLUMN j JSON NOT NULL;
UPDATE added SET v = 10 WHERE id = 1;
INSERT INTO added VALUES (3, 3, JSON_ARRAY('x'));

-- section largejson
SET NAMES utf8mb4; CREATE DATABASE largedocs; USE largedocs;
-- Past 64 KiB a document has offsets of four bytes.
CREATE TABLE j (id INT PRIMARY KEY, doc JSON);
INSERT INTO j VALUES (1, JSON_OBJECT('pad', REPEAT('p', 65600), 'n', 1, 'neg', -70000, 'list', JSON_ARRAY(1, 'two', NULL, 3.5)));

-- section geo
SET NAMES utf8mb4; SET sql_mode = '';
CREATE DATABASE geo; USE geo;
CREATE TABLE shapes (id INT PRIMARY KEY, g GEOMETRY, p POINT, l LINESTRING, pg POLYGON, mp MULTIPOINT, ml MULTILINESTRING, mpg MULTIPOLYGON, gc GEOMETRYCOLLECTION);
INSERT INTO shapes VALUES
  (1, ST_GeomFromText('POINT(0 0)'), ST_GeomFromText('POINT(1.5 -2.5)'), ST_GeomFromText('LINESTRING(0 0,1 1,2 2)'),
   ST_GeomFromText('POLYGON((0 0,10 0,10 10,0 10,0 0),(2 2,4 2,4 4,2 4,2 2))'), ST_GeomFromText('MULTIPOINT((0 0),(1 1))'),
   ST_GeomFromText('MULTILINESTRING((0 0,1 1),(2 2,3 3,4 5))'), ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)),((5 5,7 5,7 7,5 5)))'),
   ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))')),
  (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (3, ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))', 3857), ST_GeomFromText('POINT(1e300 -1e-300)'), NULL, NULL, NULL, NULL, NULL, ST_GeomFromText('GEOMETRYCOLLECTION EMPTY'));

-- section columns
-- Columns that a reader sees in the event but a plain SELECT does not show, and the other way round.
SET NAMES utf8mb4; SET time_zone = '+00:00';
CREATE DATABASE cols CHARACTER SET utf8mb4; USE cols;
CREATE TABLE gen (
  id INT PRIMARY KEY, price DECIMAL(8,2) NOT NULL, qty INT NOT NULL,
  total DECIMAL(10,2) GENERATED ALWAYS AS (price * qty) STORED, label VARCHAR(30) GENERATED ALWAYS AS (CONCAT('#', id)) VIRTUAL, tail INT);
INSERT INTO gen (id, price, qty, tail) VALUES (1, 1.50, 2, 7), (2, 0.99, 100, NULL), (3, 5, 5, 5);
UPDATE gen SET qty = 3 WHERE id = 1;
DELETE FROM gen WHERE id = 3;
CREATE TABLE invisibles (id INT PRIMARY KEY, a INT, secret VARCHAR(10) INVISIBLE DEFAULT 'dflt', z INT);
INSERT INTO invisibles VALUES (1, 10, 100);
INSERT INTO invisibles (id, a, secret, z) VALUES (2, 20, 'shown', 200);
UPDATE invisibles SET secret = 'changed' WHERE id = 1;
CREATE TABLE defaults (id INT PRIMARY KEY, v INT DEFAULT 7, d DATETIME DEFAULT '2020-01-02 03:04:05', u VARCHAR(36) DEFAULT (REPEAT('u', 3)), j JSON DEFAULT (JSON_ARRAY(1)));
INSERT INTO defaults (id) VALUES (1);
INSERT INTO defaults VALUES (2, NULL, NULL, NULL, NULL);
CREATE TABLE many_nulls (id INT PRIMARY KEY, c1 INT, c2 INT, c3 INT, c4 INT, c5 INT, c6 INT, c7 INT, c8 INT, c9 INT, c10 INT, c11 INT, c12 INT, c13 INT, c14 INT, c15 INT, c16 INT, c17 INT);
INSERT INTO many_nulls (id, c7, c8, c16) VALUES (1, 7, 8, 16), (2, NULL, 8, NULL);
UPDATE many_nulls SET c1 = 1, c8 = NULL, c17 = 17 WHERE id = 2;
CREATE TABLE parts (id INT, region INT, v VARCHAR(10), PRIMARY KEY (id, region)) PARTITION BY RANGE (region) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20), PARTITION p2 VALUES LESS THAN MAXVALUE);
INSERT INTO parts VALUES (1, 1, 'a'), (2, 11, 'b'), (3, 99, 'c');
UPDATE parts SET region = 15 WHERE id = 1;
DELETE FROM parts WHERE id = 3;
ALTER TABLE parts TRUNCATE PARTITION p2;
INSERT INTO parts VALUES (4, 50, 'd');

-- section hidden
-- Columns that no SHOW CREATE TABLE lists, and a fixed SRID.
SET NAMES utf8mb4; CREATE DATABASE hidden CHARACTER SET utf8mb4; USE hidden;
CREATE TABLE functional (id INT PRIMARY KEY, phone VARCHAR(20), city VARCHAR(20), KEY k ((RIGHT(phone, 4))), UNIQUE KEY u ((LOWER(city))));
INSERT INTO functional VALUES (1, '18606520112', 'Graz'), (2, '18606520113', NULL), (3, NULL, 'Linz');
UPDATE functional SET phone = '18606529999' WHERE id = 1;
DELETE FROM functional WHERE id = 3;
ALTER TABLE functional ADD COLUMN extra INT;
INSERT INTO functional VALUES (4, '1234567', 'Wels', 4);
SET sql_generate_invisible_primary_key = ON;
CREATE TABLE gipk (a INT, b VARCHAR(10));
SET sql_generate_invisible_primary_key = OFF;
INSERT INTO gipk VALUES (1, 'x'), (1, 'x'), (NULL, NULL);
DELETE FROM gipk WHERE a = 1 LIMIT 1;
CREATE TABLE places (id INT PRIMARY KEY, location POINT NOT NULL SRID 4326, name VARCHAR(20), SPATIAL KEY (location));
INSERT INTO places VALUES (1, ST_GeomFromText('POINT(48.2 16.37)', 4326), 'Wien'), (2, ST_GeomFromText('POINT(0 0)', 4326), 'null island');
UPDATE places SET location = ST_GeomFromText('POINT(-33.9 151.2)', 4326), name = 'Sydney' WHERE id = 2;

-- section keys
SET NAMES utf8mb4; SET sql_mode = '';
CREATE DATABASE keyed CHARACTER SET utf8mb4; USE keyed;
CREATE TABLE chain (id INT PRIMARY KEY, v VARCHAR(10));
INSERT INTO chain VALUES (1, 'one'), (2, 'two'), (3, 'three');
BEGIN; UPDATE chain SET id = 4 WHERE id = 3; UPDATE chain SET id = 3 WHERE id = 2; UPDATE chain SET id = 2 WHERE id = 1; COMMIT;
UPDATE chain SET id = id + 10 ORDER BY id DESC;
CREATE TABLE reused (id INT PRIMARY KEY, v VARCHAR(10));
INSERT INTO reused VALUES (1, 'first');
BEGIN; UPDATE reused SET id = 2 WHERE id = 1; INSERT INTO reused VALUES (1, 'second'); COMMIT;
BEGIN; INSERT INTO reused VALUES (5, 'a'); UPDATE reused SET v = 'b' WHERE id = 5; COMMIT;
BEGIN; INSERT INTO reused VALUES (6, 'a'); DELETE FROM reused WHERE id = 6; COMMIT;
BEGIN; DELETE FROM reused WHERE id = 5; INSERT INTO reused VALUES (5, 'c'); COMMIT;
CREATE TABLE tb (a INT PRIMARY KEY, b INT UNIQUE);
INSERT INTO tb VALUES (1, 2), (3, 4), (4, 1);
BEGIN; UPDATE tb SET b = NULL WHERE a = 1; UPDATE tb SET b = 2 WHERE a = 3; UPDATE tb SET b = 4 WHERE a = 1; COMMIT;
CREATE TABLE handles (id CHAR(1) PRIMARY KEY, store_id INT, handle VARCHAR(10), source_type VARCHAR(5), UNIQUE (store_id, handle, source_type));
INSERT INTO handles VALUES ('e', 1, 'h', 's'), ('n', 1, 'h', NULL), ('m', 1, 'h', NULL);
BEGIN; UPDATE handles SET source_type = 'x' WHERE id = 'e'; INSERT INTO handles VALUES ('f', 1, 'h', 's'); COMMIT;
REPLACE INTO handles VALUES ('g', 1, 'h', 's');
INSERT INTO handles VALUES ('g', 1, 'h', 's') ON DUPLICATE KEY UPDATE handle = 'dup';
CREATE TABLE composite (a VARCHAR(20), b VARCHAR(20), t DATETIME(6), v INT, PRIMARY KEY (b, t, a));
INSERT INTO composite VALUES ('a|b', 'c', '2024-01-01 00:00:00.000001', 1), ('a', 'b|c', '2024-01-01 00:00:00.000001', 2), ('a', 'c', '2024-01-01', 3);
UPDATE composite SET t = t + INTERVAL 1 MICROSECOND WHERE v = 1;
UPDATE composite SET a = 'A' WHERE v = 3;
CREATE TABLE ci (id VARCHAR(100) PRIMARY KEY, v INT) CHARACTER SET utf8mb3;
INSERT INTO ci VALUES ('A', 1), ('straße', 2);
UPDATE ci SET id = 'a' WHERE id = 'A';
CREATE TABLE keyless (a INT, b VARCHAR(10), c DOUBLE, d DATETIME, e INT, f INT, g INT, h INT, i INT, j INT, k INT);
INSERT INTO keyless (a, b) VALUES (1, 'dup'), (1, 'dup'), (1, 'dup'), (NULL, NULL), (2, NULL), (3, 'x');
DELETE FROM keyless WHERE a = 1 LIMIT 1;
UPDATE keyless SET c = 0.5, d = '2024-01-01' WHERE a = 3;
DELETE FROM keyless WHERE a IS NULL;
UPDATE keyless SET b = 'one' WHERE a = 1 LIMIT 1;
CREATE TABLE unique_only (a INT NOT NULL, b INT NOT NULL, c INT, UNIQUE KEY (b, a));
INSERT INTO unique_only VALUES (1, 2, 3), (2, 1, NULL);
UPDATE unique_only SET c = 4, a = 5 WHERE b = 1;
CREATE TABLE unique_nullable (a INT, b INT, UNIQUE KEY (a));
INSERT INTO unique_nullable VALUES (1, 1), (NULL, 2), (NULL, 2);
DELETE FROM unique_nullable WHERE b = 2 LIMIT 1;
CREATE TABLE fast (id INT PRIMARY KEY, v INT);
INSERT INTO fast VALUES (1, 1); DELETE FROM fast WHERE id = 1; INSERT INTO fast VALUES (1, 2); DELETE FROM fast; INSERT INTO fast VALUES (1, 3);
INSERT INTO fast VALUES (20, 0), (21, 0), (22, 0), (23, 0), (24, 0);
DELETE FROM fast WHERE id >= 20 AND id <> 23;

CREATE DATABASE fk; USE fk;
CREATE TABLE parent (id INT PRIMARY KEY, v INT);
CREATE TABLE child (id INT PRIMARY KEY, parent_id INT, FOREIGN KEY (parent_id) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE softchild (id INT PRIMARY KEY, parent_id INT, FOREIGN KEY (parent_id) REFERENCES parent (id) ON DELETE SET NULL);
INSERT INTO parent VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO child VALUES (10, 1), (11, 1), (20, 2), (30, 3);
INSERT INTO softchild VALUES (100, 2), (101, 3);
DELETE FROM parent WHERE id = 2;
UPDATE parent SET id = 9 WHERE id = 1;

-- section statements
SET NAMES utf8mb4; SET sql_mode = '';
CREATE DATABASE stmts CHARACTER SET utf8mb4; USE stmts;
CREATE TABLE many (id INT PRIMARY KEY, v VARCHAR(60), n INT);
-- One statement of 300 rows: several row events, the last one flagged as the end of the statement.
INSERT INTO many WITH RECURSIVE seq(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < 300) SELECT n, CONCAT('row ', n, ' ', REPEAT(CHAR(97 + n % 26), n % 40)), n * n % 97 FROM seq;
UPDATE many SET n = n + 1000 WHERE id % 3 = 0;
DELETE FROM many WHERE id % 5 = 0;
CREATE TABLE copy AS SELECT id, n FROM many WHERE id < 20;
CREATE TABLE audit (seq INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(20), id INT);
CREATE TRIGGER many_au AFTER UPDATE ON many FOR EACH ROW INSERT INTO audit (what, id) VALUES ('update', NEW.id);
UPDATE many SET v = 'triggered' WHERE id BETWEEN 1 AND 4;
-- Two tables in one statement.
UPDATE many m JOIN copy c ON m.id = c.id SET m.n = -1, c.n = -2 WHERE m.id IN (6, 7);
DELETE m, c FROM many m JOIN copy c ON m.id = c.id WHERE m.id IN (8, 9);
CREATE TEMPORARY TABLE scratch (id INT); INSERT INTO scratch VALUES (1); INSERT INTO many SELECT 1002, 'from scratch', id FROM scratch; DROP TEMPORARY TABLE scratch;
CREATE USER reader@localhost IDENTIFIED BY 'not-a-secret'; GRANT SELECT ON stmts.* TO reader@localhost; DROP USER reader@localhost;
CREATE VIEW few AS SELECT id FROM many WHERE id < 10;
INSERT IGNORE INTO many VALUES (1, 'ignored', 0), (1003, 'kept', 0);

-- section rowsquery
-- After statements: the text of the statement travels with the rows.
SET NAMES utf8mb4; USE stmts;
SET SESSION binlog_rows_query_log_events = ON;
INSERT INTO many VALUES (1001, 'with its query', 1) /* the text travels too */;
UPDATE many SET v = 'with its query ä' WHERE id = 1001;
SET SESSION binlog_rows_query_log_events = OFF;

-- section tx
SET NAMES utf8mb4; SET sql_mode = '';
CREATE DATABASE tx; USE tx;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20));
CREATE TABLE u (id INT PRIMARY KEY, v INT);
BEGIN; INSERT INTO t VALUES (1, 'kept'); SAVEPOINT a; INSERT INTO t VALUES (2, 'undone'); ROLLBACK TO a; INSERT INTO t VALUES (3, 'kept'); SAVEPOINT b; INSERT INTO u VALUES (1, 1); RELEASE SAVEPOINT b; COMMIT;
BEGIN; INSERT INTO t VALUES (4, 'rolled back'); ROLLBACK;
BEGIN; INSERT INTO t VALUES (5, 'undone'); SAVEPOINT c; ROLLBACK; INSERT INTO t VALUES (5, 'kept');
-- DDL commits what was open.
START TRANSACTION; INSERT INTO t VALUES (6, 'before ddl'); CREATE TABLE made_inside (id INT PRIMARY KEY); INSERT INTO made_inside VALUES (1); INSERT INTO t VALUES (7, 'after ddl'); COMMIT;
START TRANSACTION; INSERT INTO t VALUES (8, 'before ddl'); ALTER TABLE t ADD COLUMN w INT; INSERT INTO t VALUES (9, 'after ddl', 9); ROLLBACK;
BEGIN; COMMIT;
BEGIN; INSERT INTO t (id, v) VALUES (10, 'tables'); INSERT INTO u VALUES (10, 1); UPDATE t SET v = 'again' WHERE id = 10; UPDATE u SET v = 2 WHERE id = 10; INSERT INTO made_inside VALUES (2); COMMIT;
SET autocommit = 0; INSERT INTO u VALUES (11, 1); INSERT INTO u VALUES (12, 1); COMMIT; SET autocommit = 1;
XA START 'onephase'; INSERT INTO t (id, v) VALUES (20, 'xa one phase'); XA END 'onephase'; XA COMMIT 'onephase' ONE PHASE;
XA START 'late', 'branch', 7; INSERT INTO t (id, v) VALUES (21, 'xa late'); UPDATE u SET v = 50 WHERE id = 1; XA END 'late', 'branch', 7; XA PREPARE 'late', 'branch', 7;

-- section xa
-- After tx: the prepared branch is decided from another session, later ones lie between.
USE tx;
XA START X'00FF', X'', 1; INSERT INTO t (id, v) VALUES (22, 'xa undone'); XA END X'00FF', X'', 1; XA PREPARE X'00FF', X'', 1;
INSERT INTO u VALUES (30, 1);
XA ROLLBACK X'00FF', X'', 1;
XA COMMIT 'late', 'branch', 7;
INSERT INTO t (id, v) VALUES (23, 'after xa');

-- section ddl
SET NAMES utf8mb4; SET sql_mode = '';
CREATE DATABASE ddl CHARACTER SET utf8mb4; USE ddl;
CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(20));
INSERT INTO t VALUES (1, 1, 'plain');
ALTER TABLE t ADD COLUMN c INT DEFAULT 5; INSERT INTO t VALUES (2, 2, 'added', 6);
ALTER TABLE t ADD COLUMN first INT FIRST, ADD COLUMN mid DECIMAL(5,2) AFTER a; INSERT INTO t VALUES (100, 3, 3, 1.25, 'placed', 7);
ALTER TABLE t DROP COLUMN c; INSERT INTO t VALUES (101, 4, 4, 1.5, 'dropped');
ALTER TABLE t RENAME COLUMN a TO aa; INSERT INTO t VALUES (102, 5, 5, 1.75, 'renamed');
ALTER TABLE t MODIFY aa BIGINT UNSIGNED, MODIFY b TEXT CHARACTER SET latin1; INSERT INTO t VALUES (103, 6, 18446744073709551615, 2, 'modifié');
-- The same types in another order and back: counts alone prove nothing.
CREATE TABLE moved (id INT PRIMARY KEY, x INT, y INT, z INT);
INSERT INTO moved VALUES (1, 10, 20, 30);
ALTER TABLE moved MODIFY x INT AFTER z; INSERT INTO moved VALUES (2, 20, 30, 10);
ALTER TABLE moved MODIFY x INT AFTER id; INSERT INTO moved VALUES (3, 10, 20, 30);
CREATE TABLE tags (id INT PRIMARY KEY, item_id INT);
INSERT INTO tags VALUES (1, 1);
ALTER TABLE tags ADD COLUMN taskable_type VARCHAR(255) AFTER taskable_id, CHANGE COLUMN item_id taskable_id INT; INSERT INTO tags VALUES (2, 2, 'Task');
CREATE TABLE a (aID INT PRIMARY KEY, v INT); INSERT INTO a VALUES (1, 1);
ALTER TABLE a RENAME TO b; ALTER TABLE b CHANGE aID bID BIGINT; INSERT INTO b VALUES (2, 2); UPDATE b SET v = 3 WHERE bID = 1;
CREATE TABLE e (id INT PRIMARY KEY, e ENUM('a','b')); INSERT INTO e VALUES (1, 'a');
ALTER TABLE e MODIFY e ENUM('a','b','c'); INSERT INTO e VALUES (2, 'c');
ALTER TABLE e MODIFY e ENUM('c','b','a'); INSERT INTO e VALUES (3, 'c');
CREATE TABLE test1 (name VARCHAR(10) PRIMARY KEY); ALTER TABLE test1 ADD age INT; INSERT INTO test1 VALUES ('gone', 1); DROP TABLE test1;
CREATE TABLE test1 (id INT PRIMARY KEY, other VARCHAR(5)); INSERT INTO test1 VALUES (1, 'new');
CREATE TABLE cut (id INT PRIMARY KEY); INSERT INTO cut VALUES (1), (2); TRUNCATE TABLE cut; INSERT INTO cut VALUES (3);
-- An online schema change: fill a ghost table, swap by one RENAME, drop the old one.
CREATE TABLE t1 (id INT PRIMARY KEY, v INT); INSERT INTO t1 VALUES (1, 1), (2, 2);
CREATE TABLE _t1_gho LIKE t1; ALTER TABLE _t1_gho ADD COLUMN w INT DEFAULT 0 AFTER id; INSERT INTO _t1_gho (id, v) SELECT id, v FROM t1;
UPDATE t1 SET v = 20 WHERE id = 2; REPLACE INTO _t1_gho (id, v) VALUES (2, 20);
RENAME TABLE t1 TO _t1_del, _t1_gho TO t1; UPDATE t1 SET w = 5 WHERE id = 2; INSERT INTO t1 VALUES (3, 3, 3); DROP TABLE _t1_del;
CREATE TABLE keychange (a INT, b INT, v INT, PRIMARY KEY (a)); INSERT INTO keychange VALUES (1, 1, 1), (2, 1, 2);
ALTER TABLE keychange DROP PRIMARY KEY, ADD PRIMARY KEY (b, a); UPDATE keychange SET v = 9 WHERE a = 2;
ALTER TABLE keychange ADD UNIQUE KEY uq (v), ALGORITHM = INPLACE; DROP INDEX uq ON keychange; CREATE INDEX ix ON keychange (v); ALTER TABLE keychange RENAME INDEX ix TO ix2;
ALTER TABLE keychange COMMENT 'ALTER TABLE x ADD y INT; -- not a statement', CONVERT TO CHARACTER SET latin1;
INSERT INTO keychange VALUES (3, 3, 3);
CREATE TABLE charset_default (id INT PRIMARY KEY, s VARCHAR(10)) DEFAULT CHARSET = latin1; INSERT INTO charset_default VALUES (1, 'é');
CREATE TABLE odd_defaults (id INT PRIMARY KEY, a DATE DEFAULT '2020-00-10', b TIME NOT NULL DEFAULT '00:00:00', c VARCHAR(30) DEFAULT 'it''s, (x)', d TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00');
INSERT INTO odd_defaults (id) VALUES (1);
CREATE TABLE IF NOT EXISTS t (nothing INT); DROP TABLE IF EXISTS never_was;
CREATE DATABASE app; CREATE TABLE `app`.`users` (`app` VARCHAR(50), path VARCHAR(50) DEFAULT 'app.cfg', PRIMARY KEY (app)); INSERT INTO app.users (app) VALUES ('app');
CREATE DATABASE `my-schema`; CREATE TABLE `my-schema`.`my-table` (`status` INT PRIMARY KEY, `order` INT, `key` INT); INSERT INTO `my-schema`.`my-table` VALUES (1, 2, 3);
CREATE DATABASE test2; USE test2; CREATE TABLE e1 (id INT PRIMARY KEY); INSERT INTO e1 VALUES (1); RENAME TABLE e1 TO e2; INSERT INTO e2 VALUES (2);
RENAME TABLE test2.e2 TO ddl.moved_here; INSERT INTO ddl.moved_here VALUES (3);
CREATE DATABASE dropped; CREATE TABLE dropped.t (id INT PRIMARY KEY); INSERT INTO dropped.t VALUES (1); DROP DATABASE dropped;
USE ddl; CREATE TABLE mysel SELECT 1 AS one, 'two' AS two; CREATE TABLE likeit LIKE t; INSERT INTO likeit SELECT * FROM t WHERE id = 1;
ALTER TABLE t ADD COLUMN g INT AS (mid * 2) STORED, ADD COLUMN hid INT INVISIBLE, DROP COLUMN first; INSERT INTO t (id, aa, mid, b) VALUES (7, 7, 7, 'late');
-- Comments in the middle and a version comment.
ALTER /* why */ TABLE t /*!50000 ADD COLUMN vc INT */; INSERT INTO t (id, vc) VALUES (8, 8); # end

-- section shop
-- The schema of the demo: a small shop with a day of traffic.
SET NAMES utf8mb4; SET time_zone = '+00:00';
CREATE DATABASE shop CHARACTER SET utf8mb4; USE shop;
CREATE TABLE customers (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(80) NOT NULL, email VARCHAR(120) NOT NULL, phone VARCHAR(20),
  tier ENUM('basic','silver','gold') NOT NULL DEFAULT 'basic', created_at TIMESTAMP NOT NULL, preferences JSON, UNIQUE KEY email (email));
CREATE TABLE products (id INT UNSIGNED NOT NULL PRIMARY KEY, sku CHAR(8) NOT NULL UNIQUE, title VARCHAR(120) NOT NULL, price DECIMAL(10,2) NOT NULL, stock INT NOT NULL, tags SET('new','sale','fragile'));
CREATE TABLE orders (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, customer_id INT UNSIGNED NOT NULL, status ENUM('draft','placed','paid','shipped','cancelled') NOT NULL,
  total DECIMAL(12,2) NOT NULL DEFAULT 0, placed_at DATETIME(3), note TEXT, KEY customer (customer_id), FOREIGN KEY (customer_id) REFERENCES customers (id));
CREATE TABLE order_items (
  order_id BIGINT UNSIGNED NOT NULL, line SMALLINT UNSIGNED NOT NULL, product_id INT UNSIGNED NOT NULL, quantity INT NOT NULL, price DECIMAL(10,2) NOT NULL,
  PRIMARY KEY (order_id, line), FOREIGN KEY (order_id) REFERENCES orders (id), FOREIGN KEY (product_id) REFERENCES products (id));
INSERT INTO products
  WITH RECURSIVE seq(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < 24)
  SELECT n, CONCAT('SKU-', LPAD(n, 4, '0')), CONCAT(ELT(1 + n % 6, 'Oak', 'Steel', 'Linen', 'Café', 'Glass', 'Wool'), ' ', ELT(1 + n % 4, 'lamp', 'chair', 'bowl', 'blanket')),
    5 + n * 731 % 9500 / 100, 50 + n * 37 % 200, IF(n % 5 = 0, 'sale', IF(n % 7 = 0, 'new,fragile', '')) FROM seq;
INSERT INTO customers
  WITH RECURSIVE seq(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < 120)
  SELECT n, CONCAT(ELT(1 + n % 8, 'Anna', 'Bjørn', 'Chloé', '李雷', 'Эмма', 'Farid', 'Grace', 'Zoë'), ' ', ELT(1 + n % 7, 'Müller', 'O''Brien', 'García', 'Nowak', '王', 'Ivanova', 'Smith')),
    CONCAT('user', n, '@example.org'), IF(n % 6 = 0, NULL, CONCAT('+43 660 ', LPAD(n * 7919 % 1000000, 6, '0'))), ELT(1 + (n % 10 > 6) + (n % 10 > 8), 'basic', 'silver', 'gold'),
    TIMESTAMP('2024-03-01 08:00:00') + INTERVAL n * 61 MINUTE, IF(n % 4 = 0, NULL, JSON_OBJECT('newsletter', n % 2 = 0, 'lang', ELT(1 + n % 3, 'de', 'en', 'fr'), 'sizes', JSON_ARRAY(n % 5, n % 7))) FROM seq;
INSERT INTO orders
  WITH RECURSIVE seq(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < 160)
  SELECT n, 1 + n * 31 % 120, 'paid', 0, TIMESTAMP('2024-03-10 09:00:00.000') + INTERVAL n * 7 MINUTE + INTERVAL n * 137 % 1000 * 1000 MICROSECOND, IF(n % 9 = 0, 'gift wrap, please', NULL) FROM seq;
INSERT INTO order_items
  WITH RECURSIVE seq(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < 360)
  SELECT 1 + n % 160, 1 + n DIV 160, 1 + n * 13 % 24, 1 + n % 3, (SELECT price FROM products p WHERE p.id = 1 + n * 13 % 24) FROM seq;
UPDATE orders o JOIN (SELECT order_id, SUM(quantity * price) AS s FROM order_items GROUP BY order_id) i ON i.order_id = o.id SET o.total = i.s;
DELIMITER //
CREATE PROCEDURE trade(IN n INT)
BEGIN
  DECLARE i INT DEFAULT 0;
  DECLARE o BIGINT UNSIGNED;
  WHILE i < n DO
    START TRANSACTION;
    INSERT INTO orders (customer_id, status, placed_at) VALUES (1 + i * 17 % 120, 'placed', TIMESTAMP('2024-03-12 10:00:00.000') + INTERVAL i * 93 SECOND);
    SET o = LAST_INSERT_ID();
    INSERT INTO order_items SELECT o, k, 1 + (i + k * 5) % 24, k, price FROM products JOIN (SELECT 1 AS k UNION SELECT 2) ks ON id = 1 + (i + k * 5) % 24;
    UPDATE products SET stock = stock - 1 WHERE id = 1 + (i + 5) % 24;
    UPDATE orders SET total = (SELECT SUM(quantity * price) FROM order_items WHERE order_id = o) WHERE id = o;
    COMMIT;
    IF i % 2 = 0 THEN UPDATE orders SET status = 'paid' WHERE id = o; END IF;
    IF i % 3 = 0 THEN UPDATE orders SET status = 'shipped', note = CONCAT('parcel ', o, ' – fragile') WHERE id = o - 1; END IF;
    IF i % 10 = 9 THEN
      START TRANSACTION; DELETE FROM order_items WHERE order_id = o - 4; DELETE FROM orders WHERE id = o - 4; COMMIT;
    END IF;
    SET i = i + 1;
  END WHILE;
END//
DELIMITER ;
CALL trade(40);
DROP PROCEDURE trade;
UPDATE customers SET tier = 'gold', preferences = JSON_SET(preferences, '$.vip', TRUE) WHERE id % 20 = 1;
UPDATE orders SET status = 'cancelled' WHERE id % 40 = 0;
DELETE FROM order_items WHERE order_id IN (SELECT id FROM orders WHERE status = 'cancelled');
DELETE FROM orders WHERE status = 'cancelled' AND id < 100;
DELETE FROM customers WHERE id NOT IN (SELECT customer_id FROM orders) AND id > 60;
ALTER TABLE customers ADD COLUMN loyalty_points INT NOT NULL DEFAULT 0 AFTER tier;
UPDATE customers SET loyalty_points = id * 10 WHERE tier = 'gold';
INSERT INTO customers (name, email, tier, loyalty_points, created_at) VALUES ('Late Larry', 'larry@example.org', 'silver', 5, '2024-03-12 23:59:59');

-- section images
-- For row images that leave columns out: absent and NULL must be told apart.
SET NAMES utf8mb4; SET sql_mode = '';
CREATE DATABASE images CHARACTER SET utf8mb4; USE images;
CREATE TABLE tnull (id INT PRIMARY KEY, c1null INT, c2null INT, c3 INT NOT NULL);
INSERT INTO tnull VALUES (1, 4, 4, 4), (2, NULL, 5, 5), (3, 6, NULL, 6);
UPDATE tnull SET c1null = 44 WHERE c3 = 4; UPDATE tnull SET c2null = NULL WHERE id = 2; UPDATE tnull SET id = 30, c3 = 7 WHERE id = 3; UPDATE tnull SET c1null = NULL, c2null = 1;
DELETE FROM tnull WHERE id = 2;
CREATE TABLE dflt (id INT PRIMARY KEY, v INT DEFAULT 7, s VARCHAR(10) NOT NULL DEFAULT 'x');
INSERT INTO dflt (id) VALUES (1); INSERT INTO dflt (id, v) VALUES (2, NULL); INSERT INTO dflt VALUES (3, 7, 'x');
CREATE TABLE blobs (id INT PRIMARY KEY, a INT, t TEXT, b BLOB, j JSON, u VARCHAR(20) UNIQUE);
INSERT INTO blobs VALUES (1, 1, 'long text', X'00FF', '{"a": 1}', 'u1'), (2, 2, NULL, NULL, NULL, NULL);
UPDATE blobs SET a = 10 WHERE id = 1; UPDATE blobs SET t = 'other' WHERE id = 1; UPDATE blobs SET j = JSON_SET(j, '$.a', 2), u = 'u2' WHERE id = 1; UPDATE blobs SET t = 'now', a = 3 WHERE id = 2;
CREATE TABLE nokey (a INT, t TEXT, b INT); INSERT INTO nokey VALUES (1, 'x', NULL), (2, 'y', 2); UPDATE nokey SET b = 1 WHERE a = 1; DELETE FROM nokey WHERE a = 2;
CREATE TABLE uniq (a INT NOT NULL, b INT, t TEXT, UNIQUE KEY (a)); INSERT INTO uniq VALUES (1, 1, 'x'), (2, 2, 'y'); UPDATE uniq SET b = 5 WHERE a = 1; DELETE FROM uniq WHERE a = 2;
CREATE TABLE wide (id INT, a INT, b INT, c INT, d INT, e INT, f INT, g INT, h INT, i INT, PRIMARY KEY (id, i));
INSERT INTO wide VALUES (1, 1, 2, 3, 4, 5, 6, 7, 8, 9), (2, 1, 2, 3, 4, 5, 6, 7, 8, 9); UPDATE wide SET h = 80 WHERE id = 1; UPDATE wide SET i = 90, a = NULL WHERE id = 2;
CREATE TABLE genimg (id INT PRIMARY KEY, a INT, s INT AS (a * 2) STORED, v INT AS (a + 1) VIRTUAL, z INT); INSERT INTO genimg (id, a, z) VALUES (1, 1, 1), (2, 2, 2); UPDATE genimg SET a = 5 WHERE id = 1; UPDATE genimg SET z = 9 WHERE id = 2;
CREATE TABLE upd_ts (id INT PRIMARY KEY, v INT, ts TIMESTAMP(2) NULL ON UPDATE CURRENT_TIMESTAMP(2)); SET timestamp = 1700000000.25; INSERT INTO upd_ts (id, v) VALUES (1, 1); UPDATE upd_ts SET v = 2;

-- section partialjson
SET NAMES utf8mb4; SET time_zone = '+00:00'; SET sql_mode = '';
SET SESSION binlog_row_value_options = 'PARTIAL_JSON';
CREATE DATABASE pj CHARACTER SET utf8mb4; USE pj;
CREATE TABLE d (id INT PRIMARY KEY, a JSON, n INT, b JSON);
INSERT INTO d VALUES
  (1, '{"name": "a long enough name", "n": 1, "list": [1, 2, 3], "deep": {"x": {"y": [10, 20]}}}', 0, '{"k": "some text to replace"}'),
  (2, '[1, "two", {"three": 3}, null]', 0, NULL), (3, NULL, 0, '[]'), (4, '{"pad": "ppppppppppppppppppppppppppppppppppppppppppppppppp", "v": "abc"}', 0, '"scalar"');
UPDATE d SET a = JSON_SET(a, '$.name', 'short') WHERE id = 1;
UPDATE d SET a = JSON_SET(a, '$.n', 2, '$.deep.x.y[1]', 21) WHERE id = 1;
UPDATE d SET a = JSON_REPLACE(a, '$[1]', '2', '$[2].three', 33) WHERE id = 2;
UPDATE d SET a = JSON_REMOVE(a, '$.list') WHERE id = 1;
UPDATE d SET a = JSON_REMOVE(a, '$[0]') WHERE id = 2;
UPDATE d SET a = JSON_SET(a, '$.added', JSON_OBJECT('q', CAST(1.5 AS DECIMAL(3,1)))) WHERE id = 1;
UPDATE d SET a = JSON_SET(a, '$.n', 3), b = JSON_SET(b, '$.k', 'less'), n = 1 WHERE id = 1;
UPDATE d SET a = JSON_SET(a, '$.v', 'x') WHERE id IN (1, 4);
UPDATE d SET n = n + 1;
UPDATE d SET a = '{"whole": "new value"}' WHERE id = 3;
UPDATE d SET b = JSON_SET(b, '$.k', NULL) WHERE id = 1;
UPDATE d SET a = JSON_SET(a, '$.when', CAST('2024-01-02 03:04:05.678' AS DATETIME(3))) WHERE id = 4;
UPDATE d SET a = NULL WHERE id = 2;
UPDATE d SET id = 40, a = JSON_SET(a, '$.v', 'key changed') WHERE id = 4;
UPDATE d SET a = JSON_SET(a, '$."odd key"', 1, '$."é"', 2) WHERE id = 40;
UPDATE d SET a = JSON_SET(a, '$."odd key"', 'z') WHERE id = 40;
CREATE TABLE wide (id INT PRIMARY KEY, j1 JSON, x INT, j2 JSON, y TEXT, j3 JSON);
INSERT INTO wide VALUES (1, '{"a": "aaaaaaaaaaaaaaaaaaaa"}', 1, '{"b": "bbbbbbbbbbbbbbbbbbbb"}', 'text', '{"c": "cccccccccccccccccccc"}'), (2, NULL, 1, '{"b": "bbbbbbbbbbbbbbbbbbbb"}', NULL, NULL);
UPDATE wide SET j2 = JSON_SET(j2, '$.b', 'x');
UPDATE wide SET j1 = JSON_SET(j1, '$.a', 'x'), j3 = JSON_SET(j3, '$.c', 'y'), y = 'changed' WHERE id = 1;
DELETE FROM wide WHERE id = 2;

-- section partialmix
-- After partialjson: the same with a minimal image, and with the option off again.
SET NAMES utf8mb4; USE pj;
SET SESSION binlog_row_value_options = 'PARTIAL_JSON', SESSION binlog_row_image = 'MINIMAL';
UPDATE d SET a = JSON_SET(a, '$.name', 'min') WHERE id = 1;
UPDATE wide SET j2 = JSON_SET(j2, '$.b', 'm'), x = 2 WHERE id = 1;
SET SESSION binlog_row_image = 'FULL', SESSION binlog_row_value_options = '';
UPDATE d SET a = JSON_SET(a, '$.name', 'off') WHERE id = 1;

-- section tagged
SET NAMES utf8mb4; CREATE DATABASE tagged; USE tagged;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(30));
INSERT INTO t VALUES (1, 'no tag');
SET SESSION gtid_next = 'AUTOMATIC:blue'; INSERT INTO t VALUES (2, 'blue'); INSERT INTO t VALUES (3, 'blue');
SET SESSION gtid_next = 'AUTOMATIC:green_1'; INSERT INTO t VALUES (4, 'green'); CREATE TABLE g (id INT PRIMARY KEY); INSERT INTO g VALUES (1);
SET SESSION gtid_next = 'AUTOMATIC'; INSERT INTO t VALUES (5, 'no tag');
SET SESSION gtid_next = '11111111-2222-3333-4444-555555555555:other:9'; INSERT INTO t VALUES (6, 'foreign, with a gap');
SET SESSION gtid_next = '11111111-2222-3333-4444-555555555555:3'; INSERT INTO t VALUES (7, 'foreign');
SET SESSION gtid_next = '11111111-2222-3333-4444-555555555555:5'; BEGIN; COMMIT;
SET SESSION gtid_next = 'AUTOMATIC:blue'; UPDATE t SET v = 'blue again' WHERE id = 2; SET SESSION gtid_next = 'AUTOMATIC';

-- section session_compression
-- One session switches the compression off and on while others keep it on.
SET NAMES utf8mb4; CREATE DATABASE sc; USE sc;
SET SESSION binlog_transaction_compression = OFF;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(200));
INSERT INTO t VALUES (1, 'plain');
SET SESSION binlog_transaction_compression = ON;
INSERT INTO t VALUES (2, REPEAT('packed', 30));
BEGIN; INSERT INTO t VALUES (3, REPEAT('packed', 30)); SAVEPOINT s; INSERT INTO t VALUES (4, 'undone'); ROLLBACK TO s; UPDATE t SET v = 'packed' WHERE id = 2; COMMIT;
SET SESSION binlog_transaction_compression = OFF;
INSERT INTO t VALUES (5, 'plain');

-- section mixed
-- Only without GTIDs: a transaction over two engines, with a rollback to a savepoint.
SET NAMES utf8mb4; CREATE DATABASE mixed; USE mixed;
CREATE TABLE i (id INT PRIMARY KEY, v VARCHAR(20)); CREATE TABLE m (id INT PRIMARY KEY, v VARCHAR(20)) ENGINE = MyISAM;
BEGIN; INSERT INTO i VALUES (1, 'kept'); SAVEPOINT s; INSERT INTO i VALUES (2, 'undone'); INSERT INTO m VALUES (1, 'stays'); ROLLBACK TO s; INSERT INTO i VALUES (3, 'kept'); COMMIT;
BEGIN; INSERT INTO i VALUES (4, 'undone'); INSERT INTO m VALUES (2, 'stays'); ROLLBACK;
INSERT INTO m VALUES (3, 'alone'); UPDATE m SET v = 'changed' WHERE id = 1;

-- section halfundone
-- Only without GTIDs: a trigger writes rows that no rollback undoes. MariaDB keeps the undone rows in its log, with
-- ROLLBACK TO behind them; MySQL writes the rows that stay as a group of their own and drops the others.
SET NAMES utf8mb4; CREATE DATABASE halfundone; USE halfundone;
CREATE TABLE i (id INT PRIMARY KEY, v VARCHAR(20)); CREATE TABLE m (id INT PRIMARY KEY, v VARCHAR(20)) ENGINE = MyISAM;
CREATE TRIGGER i_ai AFTER INSERT ON i FOR EACH ROW INSERT INTO m VALUES (NEW.id, 'stays');
BEGIN; INSERT INTO i VALUES (1, 'kept'); SAVEPOINT `s``1`; INSERT INTO i VALUES (2, 'undone'); ROLLBACK TO `s``1`; INSERT INTO i VALUES (3, 'kept'); COMMIT;
BEGIN; INSERT INTO i VALUES (4, 'undone'); ROLLBACK;
INSERT INTO i VALUES (5, 'kept');

-- section statementformat
-- Changes that arrive as their text: a reader of rows has to notice.
SET NAMES utf8mb4; CREATE DATABASE stmtfmt; USE stmtfmt;
CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20));
INSERT INTO t (v) VALUES ('as a row');
SET SESSION binlog_format = 'STATEMENT';
INSERT INTO t (v) VALUES ('as a statement'); SET @v = 'user variable'; UPDATE t SET v = @v WHERE id = 2; INSERT INTO t (v) VALUES (RAND());
SET SESSION binlog_format = 'ROW';
INSERT INTO t (v) VALUES ('as a row');
