import CountersignSeal
import CountersignWire
import Testing

/// HMAC-SHA512, HKDF and Argon2id against other people's implementations.
@Suite struct DerivationTests {
    @Test(
        "HMAC-SHA512 of RFC 4231's cases 1, 2 and 6",
        arguments: [
            (
                String(repeating: "0b", count: 20), "Hi There",
                """
                87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3\
                f4e4be9d914eeb61f1702e696c203a126854
                """
            ),
            (
                "4a656665", "what do ya want for nothing?",
                """
                164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0\
                e6fdcaeab1a34d4a6b4b636e070a38bce737
                """
            ),
            (
                String(repeating: "aa", count: 131), "Test Using Larger Than Block-Size Key - Hash Key First",
                """
                80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f3526b56d037e05f2598bd0fd2215d6a\
                1e5295e64f73f63f0aec8b915a985d786598
                """
            ),
        ])
    func hmac(_ row: (key: String, message: String, mac: String)) throws {
        let key = secret(try #require(Hex.decode(row.key)))
        let message = Array(row.message.utf8)
        #expect(hex(mac(key, [message])) == row.mac)
        #expect(hex(mac(key, message.map { [$0] })) == row.mac)
    }

    /// The inputs of RFC 5869, appendix A.1 to A.3; its figures are for other hashes, so the results are
    /// those of Python's `cryptography`.
    @Test(
        "HKDF-SHA512",
        arguments: [
            (
                Array(repeating: 0x0B, count: 22), Array(0x00...0x0C), Array(0xF0...0xF9),
                "832390086cda71fb47625bb5ceb168e4c8e26a1a16ed34d9fc7fe92c1481579338da362cb8d9f925d7cb"
            ),
            (
                Array(0x00...0x4F), Array(0x60...0xAF), Array(0xB0...0xFF),
                """
                ce6c97192805b346e6161e821ed165673b84f400a2b514b2fe23d84cd189ddf1b695b48cbd1c8388441137b3ce28\
                f16aa64ba33ba466b24df6cfcb021ecff235f6a2056ce3af1de44d572097a8505d9e7a9354e5796284151c2dd39c\
                39b3cd3d8e50fcc383ebdec37476e03b721ef5efef873c281f018b8ca42e1245b2271f871ba6585ee6b7c47ddf0e\
                1e64685e87eab3e2b4df55874cc74d058879d2f2233272d5e3ee660dcad82cb9c7018fb089287c0538612abe4850\
                10009d505e5062c6e60beef755288e89
                """
            ),
            (
                Array(repeating: 0x0B, count: 22), [], [],
                "f5fa02b18298a72a8c23898a8703472c6eb179dc204c03425c970e3b164bf90fff22d04836d0e2343bac"
            ),
        ] as [([UInt8], [UInt8], [UInt8], String)])
    func hkdf(_ row: (input: [UInt8], salt: [UInt8], info: [UInt8], output: String)) {
        let parts = [Array(row.input.prefix(5)), Array(row.input.dropFirst(5))].map(secret)
        let key = HKDFSHA512.extract(salt: row.salt, from: parts)
        #expect(hex(HKDFSHA512.expand(key, info: row.info, count: row.output.utf8.count / 2)) == row.output)
    }

    /// Results of PyPI's `argon2-cffi`, the reference implementation; RFC 9106's own figure has four lanes.
    @Test(
        "Argon2id",
        arguments: [
            (
                8, 1, Array(repeating: 0, count: 16),
                """
                84ba325d52ae04169502a1bbe9d4428fdc586122f1344c8d4ef64e7c9367299ea6d35d22808036c041aae6e4ec50\
                bc5b096df0a77882e744ac6bd075d93a69ce
                """
            ),
            (
                64, 3, Array(0...15),
                """
                c44b671b18fe970fea46c01a3b3f9a4b118a3c987b3f6ee35ed292885b5994f0a81c43f9a1afa40771e20dd886ba\
                b3fef67f2b30ef3fdf1830370d597b9d7135
                """
            ),
        ] as [(Int, Int, [UInt8], String)])
    func argon2id(_ row: (memory: Int, passes: Int, salt: [UInt8], output: String)) throws {
        let function = try #require(
            Argon2id(memory: row.memory, passes: row.passes, lanes: 1, salt: row.salt))
        let input = secret([UInt8](repeating: 7, count: 64))
        #expect(hex(try function.hash(input, count: 64)) == row.output)
    }

    @Test("Argon2id's standard setting is 19 MiB, two passes, one lane, no salt")
    func standard() throws {
        let input = secret([UInt8](repeating: 7, count: 64))
        #expect(
            hex(try Argon2id.standard.hash(input, count: 64))
                == """
                048e86168a7470db58536fdd2c4deffc067875c94757b5308a7e81ae527a2e5f2ad666cb6147d9f86856ee8b\
                f7ed1c40668fc9861eab738fb4491d3579382947
                """
        )
        #expect(
            Argon2id.standard
                == Argon2id(memory: 19_456, passes: 2, lanes: 1, salt: [UInt8](repeating: 0, count: 16)))
    }

    @Test func whatLibsodiumCannotDoIsNotMade() {
        let salt = [UInt8](repeating: 0, count: 16)
        #expect(Argon2id(memory: 64, passes: 1, lanes: 2, salt: salt) == nil)
        #expect(Argon2id(memory: 7, passes: 1, lanes: 1, salt: salt) == nil)
        #expect(Argon2id(memory: .max, passes: 1, lanes: 1, salt: salt) == nil)
        #expect(Argon2id(memory: 64, passes: 0, lanes: 1, salt: salt) == nil)
        #expect(Argon2id(memory: 64, passes: 1, lanes: 1, salt: []) == nil)
    }

    private func mac(_ key: Secret, _ parts: [[UInt8]]) -> Secret {
        var mac = HMACSHA512(key: key)
        for part in parts { mac.update(part.span) }
        return mac.finish()
    }

    private func secret(_ bytes: [UInt8]) -> Secret { Secret(copying: bytes.span) }

    private func hex(_ secret: Secret) -> String { secret.withExposedBytes { Hex.encode($0) } }
}
