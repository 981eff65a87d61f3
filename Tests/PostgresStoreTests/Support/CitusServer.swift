import Foundation
import Testing

/// The Citus cluster that tests run on, and what stands in for Citus on a PostgreSQL without it.
enum CitusServer {
  /// The coordinator's address as a URI: `FANOUT_TEST_CITUS`. Its database must have the extension; it should take 500
  /// connections.
  static let address: String? = {
    let given = ProcessInfo.processInfo.environment["FANOUT_TEST_CITUS"] ?? ""
    return given.isEmpty ? nil : given
  }()

  static var isPresent: Bool { address != nil }
  static let missing: Comment =
    "SKIPPED: no Citus; give the address of a coordinator as FANOUT_TEST_CITUS"

  /// Functions by the names and with the parameters of Citus's. They distribute nothing. They record their calls, and refuse what
  /// Citus refuses for the sake of the distribution column: one that may be null, one that a unique index leaves out, and
  /// co-location with a table that has another type of column or is not distributed.
  static let standIn = """
    CREATE TABLE citus_call(place bigserial PRIMARY KEY, name text, relation text, by text, beside text);
    CREATE FUNCTION create_distributed_table(table_name regclass, distribution_column text,
      distribution_type text DEFAULT 'hash', colocate_with text DEFAULT 'default', shard_count int DEFAULT NULL)
      RETURNS void LANGUAGE plpgsql AS $stand_in$
      DECLARE
        chosen pg_attribute := (SELECT a FROM pg_attribute a
          WHERE a.attrelid = table_name AND a.attname = distribution_column);
      BEGIN
        IF NOT coalesce((chosen).attnotnull, false) THEN RAISE 'no column to distribute by'; END IF;
        IF EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = table_name AND i.indisunique
            AND (chosen).attnum <> ALL (i.indkey::int2[])) THEN
          RAISE 'a unique index does not include the distribution column';
        END IF;
        IF colocate_with <> 'none' AND NOT EXISTS (
            SELECT 1 FROM citus_call c JOIN pg_attribute a ON a.attrelid = c.relation::regclass AND a.attname = c.by
            WHERE c.relation = colocate_with AND a.atttypid = (chosen).atttypid) THEN
          RAISE 'no table to lie beside';
        END IF;
        INSERT INTO citus_call(name, relation, by, beside)
          VALUES('create_distributed_table', table_name::text, distribution_column, colocate_with);
      END $stand_in$;
    CREATE FUNCTION create_reference_table(table_name regclass) RETURNS void LANGUAGE sql AS $stand_in$
      INSERT INTO citus_call(name, relation) VALUES('create_reference_table', table_name::text) $stand_in$;
    """
}
