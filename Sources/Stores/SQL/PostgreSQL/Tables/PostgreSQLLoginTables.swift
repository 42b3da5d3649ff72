/// What the logins of several gateways share, and the functions that change it: each is one round trip.
extension PostgreSQLTables {
    static let logins = [
        pendingLogin, pendingLoginCount, milliseconds, expirePendingLogins, addPendingLogin, takePendingLogin,
        loginLimit, debitLogins, refundLogins, expireLoginLimits,
    ]

    /// A login between its two requests. The table is not logged: a start costs no write to the disk, and
    /// after a crash of the server, or at a standby that is promoted, clients start again. Source: decision
    /// 0075.
    private static let pendingLogin = """
        CREATE UNLOGGED TABLE pending_login (
            id bytea PRIMARY KEY,
            holder bytea NOT NULL,
            expires bigint NOT NULL,
            sealed bytea NOT NULL
        );
        CREATE INDEX pending_login_expires ON pending_login (expires);
        CREATE INDEX pending_login_of_holder ON pending_login (holder, expires);
        """

    /// The number of rows. A transaction that adds one holds its lock until the end: the bound is exact.
    private static let pendingLoginCount = """
        CREATE UNLOGGED TABLE pending_login_count (
            is_there boolean PRIMARY KEY DEFAULT true CHECK (is_there),
            number bigint NOT NULL
        ) WITH (fillfactor = 10);
        """

    /// The server's clock.
    private static let milliseconds = """
        CREATE FUNCTION milliseconds() RETURNS bigint LANGUAGE sql VOLATILE AS
            'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint';
        """

    /// Rows that another transaction has locked are left to it: it may wait for the count.
    private static let expirePendingLogins = """
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
        """

    /// Adds a login, and returns the number of rows. At the bound, the holders with the most logins lose
    /// their oldest.
    private static let addPendingLogin = """
        CREATE FUNCTION add_pending_login(
            login bytea, party bytea, state bytea, lifetime bigint, capacity bigint
        ) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE
            heavy bytea[];
            total bigint;
            gone bigint;
            rows bigint;
        BEGIN
            INSERT INTO pending_login_count AS c (number) VALUES (1)
                ON CONFLICT (is_there) DO UPDATE SET number = c.number + 1 RETURNING number INTO rows;
            IF rows > capacity THEN rows := rows - expire_pending_logins(); END IF;
            IF rows > capacity THEN
                WITH weights AS (SELECT holder, count(*) AS weight FROM pending_login GROUP BY holder)
                    SELECT array_agg(holder), sum(weight) INTO heavy, total FROM weights
                    WHERE weight * 2 > (SELECT max(weight) FROM weights);
                -- Many at once, so that a flood does not count all rows at each start.
                DELETE FROM pending_login WHERE id IN (SELECT id FROM pending_login
                    WHERE holder = ANY (heavy) ORDER BY expires
                    LIMIT greatest(least(total / 4, capacity / 16), 1) FOR UPDATE SKIP LOCKED);
                GET DIAGNOSTICS gone = ROW_COUNT;
                UPDATE pending_login_count SET number = number - gone;
                rows := rows - gone;
            END IF;
            INSERT INTO pending_login (id, holder, expires, sealed)
                VALUES (login, party, milliseconds() + lifetime, state);
            RETURN rows;
        END $$;
        """

    /// Removes a login and returns its state; null for an unknown or expired login.
    private static let takePendingLogin = """
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

    /// When the allowance of a bucket of guesses will be full, by the server's clock. All nodes count
    /// together. The table is logged, but no start waits for the disk: a crash forgets at most the attempts
    /// of the last half second.
    private static let loginLimit = """
        CREATE TABLE login_limit (
            kind bigint NOT NULL CHECK (kind BETWEEN 0 AND 15),
            slot bigint NOT NULL CHECK (slot BETWEEN 0 AND 1048575),
            full_at bigint NOT NULL,
            PRIMARY KEY (kind, slot)
        ) WITH (fillfactor = 50);
        """

    /// Charges the buckets, unless one of them refuses. Buckets are locked in the order of the charges, which
    /// is the same for all calls.
    private static let debitLogins = """
        CREATE FUNCTION debit_logins(
            kinds bigint[], slots bigint[], costs bigint[], refills bigint[], debts bigint[], fees bigint[],
            parts bigint[], OUT refused bigint, OUT wait bigint, OUT at bigint
        ) LANGUAGE plpgsql AS $$
        DECLARE
            had bigint;
            latest bigint;
            whole bigint;
        BEGIN
            PERFORM set_config('synchronous_commit', 'off', true);
            refused := 0;
            wait := 0;
            FOR i IN 1..cardinality(kinds) LOOP
                LOOP
                    SELECT full_at INTO had FROM login_limit
                        WHERE kind = kinds[i] AND slot = slots[i] FOR UPDATE;
                    EXIT WHEN FOUND;
                    INSERT INTO login_limit VALUES (kinds[i], slots[i], 0) ON CONFLICT DO NOTHING;
                END LOOP;
                at := milliseconds();
                latest := at + refills[i];
                -- After the clock was set back, a time may be too far ahead.
                IF had > latest + debts[i] THEN had := latest; END IF;
                whole := greatest(had, at) + costs[i];
                IF whole > latest THEN
                    refused := i;
                    wait := whole - latest;
                    IF debts[i] > 0 THEN
                        whole := least(greatest(had, at) + fees[i], latest + debts[i]);
                        wait := whole + costs[i] - latest;
                        UPDATE login_limit SET full_at = whole WHERE kind = kinds[i] AND slot = slots[i];
                    END IF;
                    FOR j IN 1..i - 1 LOOP
                        IF parts[j] = parts[i] AND debts[j] = 0 THEN
                            UPDATE login_limit SET full_at = full_at - costs[j]
                                WHERE kind = kinds[j] AND slot = slots[j];
                        END IF;
                    END LOOP;
                    RETURN;
                END IF;
                UPDATE login_limit SET full_at = whole WHERE kind = kinds[i] AND slot = slots[i];
            END LOOP;
        END $$;
        """

    /// Gives back what has not been refilled since, and returns the number of buckets.
    private static let refundLogins = """
        CREATE FUNCTION refund_logins(kinds bigint[], slots bigint[], costs bigint[], times bigint[])
            RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE
            owed bigint;
            number bigint := 0;
        BEGIN
            PERFORM set_config('synchronous_commit', 'off', true);
            FOR i IN 1..cardinality(kinds) LOOP
                owed := costs[i] - greatest(milliseconds() - times[i], 0);
                IF owed > 0 THEN
                    UPDATE login_limit SET full_at = full_at - owed WHERE kind = kinds[i] AND slot = slots[i];
                    number := number + 1;
                END IF;
            END LOOP;
            RETURN number;
        END $$;
        """

    /// One node at a time; what a start has locked is left for the next time.
    private static let expireLoginLimits = """
        CREATE FUNCTION expire_login_limits() RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE
            gone bigint := 0;
        BEGIN
            PERFORM set_config('synchronous_commit', 'off', true);
            IF pg_try_advisory_xact_lock(4850254) THEN
                DELETE FROM login_limit WHERE (kind, slot) IN (SELECT kind, slot FROM login_limit
                    WHERE full_at <= milliseconds() FOR UPDATE SKIP LOCKED);
                GET DIAGNOSTICS gone = ROW_COUNT;
            END IF;
            RETURN gone;
        END $$;
        """
}
