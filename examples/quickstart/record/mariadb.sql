-- What the MariaDB recordings contain beside the sections of mysql.sql, or instead of
-- them where the names are equal. See there.

-- section json
-- JSON is another name of LONGTEXT: the text stays as it was written.
SET NAMES utf8mb4; SET sql_mode = '';
CREATE DATABASE docs CHARACTER SET utf8mb4; USE docs;
CREATE TABLE j (id INT PRIMARY KEY, doc JSON, note VARCHAR(40));
INSERT INTO j VALUES (1, NULL, 'SQL NULL'), (2, 'null', 'JSON null'), (3, '""', 'empty string'), (4, '{"a": 1, "a": 2}', 'duplicate keys'),
  (5, '{ "spaced" :  [1, 2.50, 1e308, 123456789012345678901234567890] }', 'as written'), (6, '{"k1":"男","cardNumber":"","e":"\\u0041\\n"}', 'escapes'),
  (7, JSON_OBJECT('d', 1.10, 't', TIME'12:34:56', 'n', NULL), 'functions'), (8, CONCAT(REPEAT('[', 30), REPEAT(']', 30)), 'deep');
UPDATE j SET doc = JSON_SET(doc, '$.k4', 1) WHERE id = 6;
DELETE FROM j WHERE id = 4;
CREATE TABLE added (id INT PRIMARY KEY);
ALTER TABLE added ADD COLUMN foo JSON; INSERT INTO added VALUES (1, '{"a":1}');

-- section natives
-- Types of MariaDB alone.
SET NAMES utf8mb4; SET sql_mode = '';
CREATE DATABASE natives CHARACTER SET utf8mb4; USE natives;
CREATE TABLE uuids (id UUID PRIMARY KEY, v UUID);
INSERT INTO uuids VALUES ('123e4567-e89b-12d3-a456-426614174000', '00000000-0000-0000-0000-000000000000'), ('ffffffff-ffff-ffff-ffff-ffffffffffff', NULL),
  ('6ccd780c-baba-1026-9564-5b8c656024db', '6ccd780c-baba-4026-9564-5b8c65602400'), ('6ccd780c-baba-7026-9564-5b8c65602400', '20202020-2020-2020-2020-202020202020');
UPDATE uuids SET v = '123e4567-e89b-12d3-a456-426614174001' WHERE id = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
DELETE FROM uuids WHERE id = '123e4567-e89b-12d3-a456-426614174000';
CREATE TABLE addresses (id INT PRIMARY KEY, v4 INET4, v6 INET6);
INSERT INTO addresses VALUES (1, '0.0.0.0', '::'), (2, '255.255.255.255', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'), (3, '10.0.0.1', '::ffff:10.0.0.1'), (4, '192.168.1.0', '2001:db8::'),
  (5, NULL, NULL), (6, '32.32.32.32', '2001:db8:0:0:1::1'), (7, '1.2.3.4', '::1.2.3.4');
UPDATE addresses SET v6 = '2001:db8::1', v4 = '10.0.0.0' WHERE id = 3;
-- Compressed columns: short values stay plain inside, long ones are packed.
CREATE TABLE packed (id INT PRIMARY KEY, v VARCHAR(500) COMPRESSED, vb VARBINARY(500) COMPRESSED, tt TINYTEXT COMPRESSED, t TEXT COMPRESSED, mt MEDIUMTEXT COMPRESSED, lt LONGTEXT COMPRESSED CHARACTER SET latin1,
  tb TINYBLOB COMPRESSED, b BLOB COMPRESSED, mb MEDIUMBLOB COMPRESSED, lb LONGBLOB COMPRESSED);
INSERT INTO packed VALUES (1, 'short', X'00FF', 'tiny', 'text', 'medium', 'é', X'00', X'01', X'02', X'03'), (2, '', '', '', '', '', '', '', '', '', ''), (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (4, REPEAT('packed ä ', 50), REPEAT(X'00FF', 200), REPEAT('t', 254), REPEAT('text ', 300), REPEAT('m', 2000), REPEAT('é', 3000), REPEAT(X'AA', 254), REPEAT(X'BBCC', 300), REPEAT(X'DD', 2000), REPEAT(X'00', 3000));
UPDATE packed SET t = REPEAT('other ', 200), v = 'x' WHERE id = 4;
UPDATE packed SET b = REPEAT('z', 500) WHERE id = 1;
CREATE TABLE points (id INT PRIMARY KEY, p POINT REF_SYSTEM_ID = 4326 NOT NULL, g GEOMETRY);
INSERT INTO points VALUES (1, ST_GeomFromText('POINT(16.37 48.2)', 4326), ST_GeomFromText('LINESTRING(0 0,1 1)')), (2, POINT(0, 0), NULL);
CREATE TABLE returned (id INT PRIMARY KEY AUTO_INCREMENT, v INT DEFAULT (3 + 4)); INSERT INTO returned (v) VALUES (DEFAULT), (1) RETURNING id; DELETE FROM returned WHERE v = 1 RETURNING id;

-- section versioned
SET NAMES utf8mb4; SET time_zone = '+00:00';
CREATE DATABASE versioned CHARACTER SET utf8mb4; USE versioned;
CREATE TABLE implicit (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING;
INSERT INTO implicit VALUES (1, 1), (2, 2); UPDATE implicit SET v = 10 WHERE id = 1; DELETE FROM implicit WHERE id = 2;
CREATE TABLE explicit (id INT PRIMARY KEY, v INT, since TIMESTAMP(6) GENERATED ALWAYS AS ROW START, until TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (since, until)) WITH SYSTEM VERSIONING;
INSERT INTO explicit (id, v) VALUES (1, 1), (2, 2), (3, 3); UPDATE explicit SET v = 10 WHERE id = 1; DELETE FROM explicit WHERE id = 2; UPDATE explicit SET id = 4 WHERE id = 3;
CREATE TABLE unversioned_column (id INT PRIMARY KEY, v INT, w INT WITHOUT SYSTEM VERSIONING) WITH SYSTEM VERSIONING;
INSERT INTO unversioned_column VALUES (1, 1, 1); UPDATE unversioned_column SET w = 2; UPDATE unversioned_column SET v = 2;
CREATE TABLE booked (room INT, b DATE, e DATE, PERIOD FOR stay (b, e), UNIQUE (room, stay WITHOUT OVERLAPS));
INSERT INTO booked VALUES (1, '2024-01-01', '2024-01-10'); DELETE FROM booked FOR PORTION OF stay FROM '2024-01-03' TO '2024-01-05'; UPDATE booked FOR PORTION OF stay FROM '2024-01-07' TO '2024-01-08' SET room = 2;

-- section sequences
CREATE DATABASE seqs; USE seqs;
CREATE SEQUENCE s START WITH 10 INCREMENT BY 5 MAXVALUE 1000 CACHE 4; CREATE SEQUENCE down START WITH -1 INCREMENT BY -1 MINVALUE -10 CYCLE NOCACHE;
SELECT NEXTVAL(s), NEXTVAL(s); SELECT NEXTVAL(down); SELECT SETVAL(s, 200); SELECT NEXTVAL(s);
CREATE TABLE t (id BIGINT DEFAULT NEXTVAL(s) PRIMARY KEY, v INT); INSERT INTO t (v) VALUES (1), (2), (3), (4), (5), (6);
ALTER SEQUENCE s RESTART 500; INSERT INTO t (v) VALUES (7);

-- section xa
-- After tx: the branch prepared there is decided from another session.
USE tx;
INSERT INTO u VALUES (30, 1);
XA START X'00FF', X'', 1; INSERT INTO t (id, v) VALUES (22, 'xa undone'); XA END X'00FF', X'', 1; XA PREPARE X'00FF', X'', 1; XA ROLLBACK X'00FF', X'', 1;
XA COMMIT 'late', 'branch', 7;
INSERT INTO t (id, v) VALUES (23, 'after xa');

-- section twophase
-- An ALTER that is announced when it begins and confirmed when it ends.
CREATE DATABASE twophase; USE twophase;
CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1);
SET SESSION binlog_alter_two_phase = ON;
ALTER TABLE t ADD COLUMN w INT FIRST, ALGORITHM = COPY; INSERT INTO t VALUES (2, 2, 2);
ALTER TABLE t DROP COLUMN v; INSERT INTO t VALUES (3, 3);
SET SESSION binlog_alter_two_phase = OFF;

-- section domains
CREATE DATABASE domains; USE domains;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)); CREATE TABLE u (id INT PRIMARY KEY, v VARCHAR(20));
INSERT INTO t VALUES (1, 'domain 0');
SET SESSION gtid_domain_id = 1; INSERT INTO u VALUES (1, 'domain 1'); BEGIN; INSERT INTO u VALUES (2, 'domain 1'); INSERT INTO u VALUES (3, 'domain 1'); COMMIT;
SET SESSION gtid_domain_id = 4294967295, SESSION server_id = 7; INSERT INTO u VALUES (4, 'largest domain');
SET SESSION gtid_domain_id = 0; INSERT INTO t VALUES (2, 'server 7');
SET SESSION server_id = 1011, SESSION gtid_domain_id = 1, SESSION gtid_seq_no = 1073719201; INSERT INTO u VALUES (5, 'a jump');

-- section domains2
USE domains;
INSERT INTO t VALUES (3, 'domain 0'); SET SESSION gtid_domain_id = 1; UPDATE u SET v = 'domain 1 again' WHERE id = 1; SET SESSION gtid_domain_id = 2; CREATE TABLE w (id INT PRIMARY KEY); INSERT INTO w VALUES (1);

-- section oldtimes
SET time_zone = '+00:00'; SET sql_mode = '';
CREATE DATABASE oldtimes; USE oldtimes;
CREATE TABLE t (id INT PRIMARY KEY, d DATE, t TIME, dt DATETIME, ts TIMESTAMP NULL, y YEAR);
INSERT INTO t VALUES (1, '2024-02-29', '12:34:56', '2024-02-29 12:34:56', '2024-02-29 12:34:56', 2024), (2, '0000-00-00', '-00:00:01', '0000-00-00', 0, 0),
  (3, '9999-12-31', '838:59:59', '9999-12-31 23:59:59', '2038-01-19 03:14:07', 2155), (4, NULL, NULL, NULL, NULL, NULL), (5, '2020-00-10', '-838:59:59', '0022-11-30 08:05:43', '1970-01-01 00:00:01', 1901);
UPDATE t SET t = '-507:48:27' WHERE id = 1;
