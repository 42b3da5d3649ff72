-- Asks Countersign whether a request may pass, and puts what it says of the caller in the place of what the caller said.
local url = os.getenv("COUNTERSIGN_DECIDE") or "http://127.0.0.1:8443/countersign/v1/decide"
local secret = assert(os.getenv("COUNTERSIGN_SECRET"), "COUNTERSIGN_SECRET is not set")

-- They are about a connection or a body that this question has not.
local left_out = {
    ["host"] = true, ["connection"] = true, ["content-length"] = true, ["transfer-encoding"] = true, ["expect"] = true,
    ["te"] = true, ["keep-alive"] = true, ["countersign-decide"] = true,
    ["x-original-method"] = true, ["x-original-uri"] = true, ["x-original-host"] = true, ["x-forwarded-for"] = true,
}

core.register_action("decide", { "http-req" }, function(txn)
    local asked = {}
    local sent = txn.http:req_get_headers()
    for name, values in pairs(sent) do
        if not left_out[name] then
            asked[name] = {}
            for index = 0, #values do asked[name][index + 1] = values[index] end
        end
    end
    asked["x-original-method"] = { txn.sf:method() }
    asked["x-original-uri"] = { txn.sf:url() }
    asked["x-original-host"] = { txn.sf:req_fhdr("host") }
    asked["x-forwarded-for"] = { txn.sf:src() }
    asked["countersign-decide"] = { secret }
    local answer = core.httpclient():get({ url = url, headers = asked, timeout = 5000 })
    local said = answer and answer.headers or {}
    txn:set_var("txn.countersign_allowed", answer ~= nil and answer.status == 200)
    txn:set_var("txn.countersign_refusal", said["countersign-refusal"] and said["countersign-refusal"][0] or "unavailable")
    for name, _ in pairs(sent) do
        if string.sub(name, 1, 11) == "countersign" then txn.http:req_del_header(name) end
    end
    for name, values in pairs(said) do
        if string.sub(name, 1, 12) == "countersign-" and values[0] ~= "" then
            txn.http:req_set_header(name, values[0])
        end
    end
end)
