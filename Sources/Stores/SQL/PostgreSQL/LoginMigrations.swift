extension PostgreSQLMigrations {
    /// Logins between their two requests. The tables are not logged: a start costs no write to the disk, and
    /// after a crash of the server, or at a standby that is promoted, clients start again. Source: decision
    /// 0075.
    static let pendingLogins = """
        CREATE UNLOGGED TABLE pending_login (
            id bytea PRIMARY KEY,
            holder bytea NOT NULL,
            expires bigint NOT NULL,
            sealed bytea NOT NULL
        );
        CREATE INDEX pending_login_expires ON pending_login (expires);
        CREATE INDEX pending_login_of_holder ON pending_login (holder, expires);

        -- The number of rows. Who adds one holds its lock until the end: the bound is exact.
        CREATE UNLOGGED TABLE pending_login_count (
            is_there boolean PRIMARY KEY DEFAULT true CHECK (is_there),
            number bigint NOT NULL
        ) WITH (fillfactor = 10);

        CREATE FUNCTION milliseconds() RETURNS bigint LANGUAGE sql VOLATILE AS
            'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint';

        -- Rows that another transaction has locked are left to it: it may wait for the count.
        CREATE FUNCTION expire_pending_logins() RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE
            gone bigint;
        BEGIN
            DELETE FROM pending_login WHERE id IN (SELECT id FROM pending_login
                WHERE expires <= milliseconds() FOR UPDATE SKIP LOCKED);
            GET DIAGNOSTICS gone = ROW_COUNT;
            IF gone > 0 THEN UPDATE pending_login_count SET number = number - gone; END IF;
            RETURN gone;
        END $$;

        CREATE FUNCTION add_pending_login(
            login bytea, party bytea, state bytea, lifetime bigint, capacity bigint
        ) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE
            heaviest bytea;
            weight bigint;
            gone bigint;
            rows bigint;
        BEGIN
            INSERT INTO pending_login_count AS c (number) VALUES (1)
                ON CONFLICT (is_there) DO UPDATE SET number = c.number + 1 RETURNING number INTO rows;
            IF rows > capacity THEN rows := rows - expire_pending_logins(); END IF;
            IF rows > capacity THEN
                SELECT holder, count(*) INTO heaviest, weight FROM pending_login
                    GROUP BY holder ORDER BY count(*) DESC, min(expires) LIMIT 1;
                -- A quarter of them, so that a flood does not count all rows at each start.
                DELETE FROM pending_login WHERE id IN (SELECT id FROM pending_login
                    WHERE holder = heaviest ORDER BY expires LIMIT greatest(weight / 4, 1)
                    FOR UPDATE SKIP LOCKED);
                GET DIAGNOSTICS gone = ROW_COUNT;
                UPDATE pending_login_count SET number = number - gone;
                rows := rows - gone;
            END IF;
            INSERT INTO pending_login (id, holder, expires, sealed)
                VALUES (login, party, milliseconds() + lifetime, state);
            RETURN rows;
        END $$;

        CREATE FUNCTION take_pending_login(login bytea) RETURNS bytea LANGUAGE plpgsql AS $$
        DECLARE
            taken pending_login;
        BEGIN
            DELETE FROM pending_login WHERE id = login RETURNING * INTO taken;
            IF NOT FOUND THEN RETURN NULL; END IF;
            UPDATE pending_login_count SET number = number - 1;
            RETURN CASE WHEN taken.expires > milliseconds() THEN taken.sealed END;
        END $$;
        """
}
