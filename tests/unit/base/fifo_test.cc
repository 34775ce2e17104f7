// A list in order of age, whose links are in its nodes.
#include "base/fifo.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rio::test {
namespace {

struct Node {
  int value = 0;
  base::FifoLinks<Node> links = {};
};
using List = base::Fifo<Node, &Node::links>;

/// The values of a list in order of age; links back and forth agree.
[[nodiscard]] std::vector<int> values(const List& list) {
  std::vector<int> all;
  const Node* before = nullptr;
  for (const Node* node = list.first(); node != nullptr; node = List::next(*node)) {
    EXPECT_EQ(node->links.prev, before);
    before = node;
    all.push_back(node->value);
  }
  EXPECT_EQ(list.is_empty(), all.empty());
  return all;
}

using Values = std::vector<int>;

TEST(Fifo, NodesInOrderOfAge) {
  Node a{1};
  Node b{2};
  Node c{3};
  List list;
  EXPECT_EQ(values(list), Values{});
  EXPECT_EQ(list.pop(), nullptr);
  list.append(b);
  list.append(c);
  list.prepend(a);
  EXPECT_EQ(values(list), (Values{1, 2, 3}));
  EXPECT_EQ(list.pop(), &a);
  list.append(a);
  EXPECT_EQ(values(list), (Values{2, 3, 1}));
}

TEST(Fifo, ANodeIsRemovedWhereverItIs) {
  for (int removed = 0; removed < 3; ++removed) {
    Node nodes[3] = {{0}, {1}, {2}};
    List list;
    for (Node& node : nodes) {
      list.append(node);
    }
    list.remove(nodes[removed]);
    Values rest = {0, 1, 2};
    rest.erase(rest.begin() + removed);
    EXPECT_EQ(values(list), rest);
    list.append(nodes[removed]);
    rest.push_back(removed);
    EXPECT_EQ(values(list), rest);
  }
  Node alone{7};
  List list;
  list.append(alone);
  list.remove(alone);
  EXPECT_EQ(values(list), Values{});
  list.prepend(alone);
  EXPECT_EQ(values(list), Values{7});
}

TEST(Fifo, EachMayBeMovedElsewhere) {
  Node nodes[4] = {{0}, {1}, {2}, {3}};
  List list;
  List odd;
  list.for_each([](const Node&) { ADD_FAILURE(); });
  for (Node& node : nodes) {
    list.append(node);
  }
  Values seen;
  list.for_each([&](Node& node) {
    seen.push_back(node.value);
    if (node.value % 2 == 1) {
      list.remove(node);
      odd.append(node);
    }
  });
  EXPECT_EQ(seen, (Values{0, 1, 2, 3}));
  EXPECT_EQ(values(list), (Values{0, 2}));
  EXPECT_EQ(values(odd), (Values{1, 3}));
  EXPECT_EQ(list.find([](const Node& node) { return node.value == 2; }), &nodes[2]);
  EXPECT_EQ(list.find([](const Node& node) { return node.value == 1; }), nullptr);
}

TEST(Fifo, AllOfAnotherList) {
  Node nodes[4] = {{0}, {1}, {2}, {3}};
  List list;
  List others;
  list.append_all(others);
  EXPECT_EQ(values(list), Values{});
  others.append(nodes[0]);
  others.append(nodes[1]);
  list.append_all(others);
  EXPECT_EQ(values(list), (Values{0, 1}));
  EXPECT_EQ(values(others), Values{});
  others.append(nodes[2]);
  list.append_all(others);
  list.append(nodes[3]);
  EXPECT_EQ(values(list), (Values{0, 1, 2, 3}));
}

}  // namespace
}  // namespace rio::test
