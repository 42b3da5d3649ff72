// Proves that a mask holds exactly the fields that were put in, below 64 and above, and none beyond its
// limit.
import CountersignWire
import Testing

@Suite("Field masks")
struct FieldMaskTests {
    @Test("what is inserted is there, and nothing else")
    func inserting() {
        for index in 0..<FieldMask.limit {
            var mask = FieldMask()
            #expect(mask.isEmpty)
            mask.insert(index)
            #expect((0..<FieldMask.limit).filter { mask.contains($0) } == [index])
            mask.remove(index)
            #expect(mask.isEmpty)
        }
    }

    @Test("an index that a mask cannot name is in none", arguments: [-1, 128, 129, 192, Int.max, Int.min])
    func outside(index: Int) {
        #expect(FieldMask(index).isEmpty)
        #expect(!FieldMask.all.contains(index))
    }

    @Test("the first index from each place on")
    func firstIndices() {
        let few: FieldMask = [0, 5, 63, 64, 100, 127]
        for start in 0...FieldMask.limit {
            let expected = (start..<FieldMask.limit).first { few.contains($0) } ?? FieldMask.limit
            #expect(few.firstIndex(from: start) == expected)
            #expect(FieldMask().firstIndex(from: start) == FieldMask.limit)
            #expect(FieldMask.all.firstIndex(from: start) == start)
        }
    }

    @Test func sets() {
        let few: FieldMask = [1, 63, 64, 127]
        #expect(few.intersects([64]) && !few.intersects([0, 2, 65]))
        #expect(few.subtracting([63, 127]) == [1, 64])
        #expect(
            FieldMask.all.subtracting(few).intersects([0]) && !FieldMask.all.subtracting(few).intersects(few))
        var common = few
        common.formIntersection([2, 63, 64])
        #expect(common == [63, 64])
        var both = few
        both.formUnion([2])
        #expect(both == [1, 2, 63, 64, 127])
    }
}
