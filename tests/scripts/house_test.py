#!/usr/bin/env python3
"""scripts/bench house counts lines, friends, circles of includes, classes, functions and parsers as it says."""
import os
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
from bench import house  # noqa: E402  pylint: disable=wrong-import-position

SOURCE = '''#include "a.hpp"
#define OPEN {
namespace rio {
namespace {
constexpr uint32_t kNumbers[] = {1'000, 2};
}  // namespace
// A comment with a {
class alignas(64) Wide final : public Base<int> {
 public:
  Wide() : a_{1}, b_(2) {
    call("}");
  }
  int get() const noexcept { return a_; }

 private:
  std::function<void()> hook_{};
  enum class Kind { kOne, kTwo };
};
template <class T, class U>
[[nodiscard]] auto make(const T& value = {}) -> Wide
{
  auto lambda = [&] {
    if (value) { return; }
  };
  lambda();
}
struct Plain { char brace = '{'; };
bool Wide::operator==(const Wide& other) const {
  return true;
}
Wide::~Wide() { a_ = 1; }
}  // namespace rio
extern "C" {
int c_function(void) { return 0; }
}
'''


class House(unittest.TestCase):
    def test_scopes(self):
        found = sorted(house.scopes(SOURCE), key=lambda one: (one[2], -one[3]))
        self.assertEqual([(kind, name, last - first + 1) for kind, name, first, last in found], [
            ("class", "Wide", 11), ("function", "Wide", 3), ("function", "get", 1), ("function", "make", 8),
            ("class", "Plain", 1), ("function", "Wide::operator==", 3), ("function", "Wide::~Wide", 1),
            ("function", "c_function", 1)])

    def test_braces_that_do_not_match(self):
        for text in ("void f() {\n", "}\n"):
            with self.assertRaises(ValueError):
                house.scopes(text)

    def test_whole_tree(self):
        files = house.sources(ROOT)
        functions = house.longest(files, "function")
        self.assertGreater(len(functions), 3000)
        self.assertTrue(all("function" == kind or name for path in ("pmd/dev/tx_queue.hpp",) if path in files
                            for kind, name, _, _ in house.scopes(files[path])))

    def test_lines(self):
        self.assertEqual(house.lines({"lib/a.cc": "1\n2\n", "lib/b.cc": "3\n"}), 3)

    def test_friends(self):
        files = {"lib/a.hpp": "class A {\n  friend class B;\n  // friend class C;\n  int friendly;\n};\n",
                 "apps/a.hpp": "class A { \n friend class B; };\n"}
        self.assertEqual([str(one) for one in house.friends(files)], ["lib/a.hpp:2: friend class B"])

    def test_up(self):
        files = {"lib/x/a.hpp": '#include "lib/x/b.hpp"\n', "lib/x/b.hpp": "", "lib/x/b.cc": '#include "lib/x/b.hpp"\n'}
        self.assertEqual(house.up(files), [])
        files["lib/x/b.cc"] += '#include "lib/x/a.hpp"\n'
        self.assertEqual([str(one) for one in house.up(files)], ["lib/x/b.cc:2: includes lib/x/a.hpp: a circle of 2 files"])
        self.assertEqual(house.up(files, house.named("# why\nlib/x/b.cc -> lib/x/a.hpp: a reason\n")), [])
        # Folders: x uses y, and one file of y uses x.
        files = {"pmd/x/a.hpp": '#include "pmd/y/b.hpp"\n#include "pmd/y/c.hpp"\n', "pmd/y/b.hpp": "", "pmd/y/c.hpp": "",
                 "pmd/y/d.hpp": '\n#include "pmd/x/e.hpp"\n', "pmd/x/e.hpp": ""}
        self.assertEqual([str(one) for one in house.up(files)],
                         ["pmd/y/d.hpp:2: includes pmd/x/e.hpp: a circle of 2 folders"])
        # A folder detail/ is a part of the one that it is in, and NAME_impl a part of NAME.
        files = {"fpga/m/a.cc": '#include "fpga/m/detail/b.hpp"\n', "fpga/m/detail/b.hpp": '#include "fpga/m/c.hpp"\n',
                 "fpga/m/c.hpp": "", "fpga/m/c.cc": '#include "fpga/m/detail/c_impl.hpp"\n',
                 "fpga/m/detail/c_impl.hpp": '#include "fpga/m/c.hpp"\n'}
        self.assertEqual(house.up(files), [])

    def test_grammar(self):
        parser = 'if (key == "exact") {} if (key == "pcie=") {} if (key == "qps") {}\n'
        files = {"pmd/name/parse.cc": parser, "pmd/name/keys.cc": parser, "apps/a.cc": '"exact" "qps" // "pcie"\n'}
        self.assertEqual([one.path for one in house.grammar(files)], ["pmd/name/keys.cc"])
        files["lib/ofi/b.cc"] = '"shm:" "udp:" "relay:"\n'
        self.assertEqual([one.path for one in house.grammar(files)], ["lib/ofi/b.cc", "pmd/name/keys.cc"])


if __name__ == "__main__":
    unittest.main()
