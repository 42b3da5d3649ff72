/// The deployment's own values, its log and its counters.
extension SchemaDialect {
    var deployment: String {
        """
        -- The values of `MetaName`, one of which each new store has: the first byte of what is sealed.
        CREATE TABLE meta (name \(text) PRIMARY KEY, value \(bytes) NOT NULL, row_tag \(bytes))\(rowsByKey);
        INSERT INTO meta (name, value) VALUES ('seal-slot', \(firstSlot));

        -- Counts the changes of what the gate judges by, so that a server notices those of other processes.
        CREATE TABLE revision (number \(integer) NOT NULL)\(rows);
        INSERT INTO revision VALUES (0);

        -- The sealed digest of each authenticated table, and the summary of all.
        CREATE TABLE row_digest (name \(text) NOT NULL UNIQUE, value \(bytes) NOT NULL)\(rows);

        -- The audit log, to which triggers of each kind of database only let records be added.
        CREATE TABLE audit (
            number \(integer) PRIMARY KEY,
            record \(text) NOT NULL,
            tag \(bytes) NOT NULL
        )\(rows);

        -- How many requests of a release had which outcome on a day.
        CREATE TABLE meter (
            day \(integer) NOT NULL,
            app \(text) NOT NULL, key_id \(text) NOT NULL, scheme \(text) NOT NULL, outcome \(text) NOT NULL,
            count \(integer) NOT NULL,
            last_seen \(integer) NOT NULL,
            PRIMARY KEY (day, app, key_id, scheme, outcome)
        )\(rowsByKey);

        -- Events for endpoints of webhooks, until they are delivered. A row has the number of its account, so
        -- that an erasure finds it, or zero.
        CREATE TABLE webhook_delivery (
            number \(lastingIdentity),
            endpoint \(text) NOT NULL, event \(text) NOT NULL,
            account \(integer) NOT NULL,
            created \(integer) NOT NULL, due \(integer) NOT NULL, attempts \(integer) NOT NULL,
            urgency \(integer) NOT NULL DEFAULT 2,
            given_up \(integer), failure \(text),
            body \(bytes) NOT NULL,
            row_tag \(bytes)
        )\(rows);
        CREATE INDEX webhook_delivery_due ON webhook_delivery (urgency, due, endpoint) WHERE given_up IS NULL;
        CREATE INDEX webhook_delivery_given_up ON webhook_delivery (given_up) WHERE given_up IS NOT NULL;
        CREATE INDEX webhook_delivery_waiting ON webhook_delivery (endpoint, account, created)
            WHERE given_up IS NULL;
        CREATE INDEX webhook_delivery_dead ON webhook_delivery (endpoint, given_up)
            WHERE given_up IS NOT NULL;
        CREATE INDEX webhook_delivery_of_account ON webhook_delivery (account);

        -- How many events of an account were told since a time, by their urgency, and how many were withheld:
        -- none, if the time is null. And when the last event about its failed logins was added.
        CREATE TABLE webhook_account (
            account \(integer) PRIMARY KEY,
            began \(integer),
            security \(integer) NOT NULL, routine \(integer) NOT NULL, withheld \(integer) NOT NULL,
            guessed \(integer)
        )\(rows);
        CREATE INDEX webhook_account_began ON webhook_account (began);

        -- Deliveries that an endpoint lost because its share of the outbox was full.
        CREATE TABLE webhook_dropped (
            endpoint \(text) PRIMARY KEY, count \(integer) NOT NULL, last \(integer) NOT NULL
        )\(rowsByKey);
        """
    }
}
