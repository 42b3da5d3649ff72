extension RawRequest {
    /// A signed request with less of a signature: without one, and with another algorithm or version named in it. What is weaker, and how it
    /// looks.
    var weakened: [(String, RawRequest)] {
        var found = [("the request without its signature", unsigned)]
        for (named, weaker) in RawRequest.weakerNames {
            var other = self
            other.target = target.replacing(named, with: weaker)
            for index in other.fields.lines.indices {
                let line = "\(fields.lines[index].name): \(fields.lines[index].value)"
                guard line.contains(named) else { continue }
                let parts = line.replacing(named, with: weaker).split(separator: ": ", maxSplits: 1)
                other.fields.lines[index] = RawFields.Line(String(parts[0]), String(parts[1]))
            }
            other.body = Array(bodyText.replacing(named, with: weaker).utf8)
            if other != self { found.append(("the signature under another name, \(weaker)", other)) }
        }
        return found
    }

    /// As a GET with the form in the query; nil where it is one already, or has no form.
    var asGET: RawRequest? {
        guard method == "POST", let form = bodyForm, queryForm.pairs.isEmpty else { return nil }
        var get = self
        get.method = "GET"
        get.bodyForm = nil
        get.queryForm = form
        return get
    }

    private var unsigned: RawRequest {
        var bare = self
        for name in ["Signature", "Signature-Input", "X-Auth-Signature"] { bare.fields.remove(name) }
        if fields["Authorization"]?.hasPrefix("AWS4") == true { bare.fields.remove("Authorization") }
        for name in ["sign", "auth_signature"] {
            if bare.bodyForm?[name] != nil { bare.bodyForm?[name] = nil }
            if bare.queryForm[name] != nil { bare.queryForm[name] = nil }
        }
        return bare
    }

    /// What names the algorithm or the version, and something weaker in its place.
    private static let weakerNames = [
        (#"alg="hmac-sha256""#, #"alg="none""#), (#"tag="countersign""#, #"tag="none""#),
        ("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA1"), ("auth_version=1.0", "auth_version=2"),
        ("auth_version=1.0", "auth_version=0"),
        ("auth_version=2", "auth_version=1.0"), ("X-Auth-Version: 4", "X-Auth-Version: 3"),
    ]
}
