/// @file
/// A list in order of age, whose links lie in its entries.
#pragma once

namespace rio::base {

/// Where a node is in a list: a member of the node for each list that it may be in.
template <class Node>
struct FifoLinks {
  Node* next;
  Node* prev;
};

/// Hot: each function is a few instructions. It owns no node and allocates nothing. One thread.
template <class Node, FifoLinks<Node> Node::*kLinks>
class Fifo {
 public:
  [[nodiscard]] bool is_empty() const { return first_ == nullptr; }
  /// @return the oldest; null: there is none.
  [[nodiscard]] Node* first() const { return first_; }
  /// @return the next younger one; null: there is none.
  [[nodiscard]] static Node* next(const Node& node) { return (node.*kLinks).next; }

  /// @return the oldest node that `is` accepts; null: there is none.
  template <class Is>
  [[nodiscard]] Node* find(Is&& is) const {
    Node* node = first_;
    while (node != nullptr && !is(*node)) {
      node = next(*node);
    }
    return node;
  }

  /// `visit(Node&)` for all, the oldest first. It may take that node out, and put it elsewhere or
  /// free it, but leaves the next one where it is.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (Node* node = first_; node != nullptr;) {
      Node* const after = (node->*kLinks).next;
      visit(*node);
      node = after;
    }
  }

  /// @param node in no list of these links.
  void append(Node& node) {
    (node.*kLinks) = {nullptr, last_};
    (last_ != nullptr ? (last_->*kLinks).next : first_) = &node;
    last_ = &node;
  }

  /// Append all nodes of another list, which is empty afterwards.
  void append_all(Fifo& others) {
    if (others.first_ == nullptr) {
      return;
    }
    (others.first_->*kLinks).prev = last_;
    (last_ != nullptr ? (last_->*kLinks).next : first_) = others.first_;
    last_ = others.last_;
    others = {};
  }

  /// Insert a node as the oldest.
  void prepend(Node& node) {
    (node.*kLinks) = {first_, nullptr};
    (first_ != nullptr ? (first_->*kLinks).prev : last_) = &node;
    first_ = &node;
  }

  /// Take the oldest out. @return null: there is none.
  Node* pop() {
    Node* const node = first_;
    if (node != nullptr) {
      first_ = (node->*kLinks).next;
      (first_ != nullptr ? (first_->*kLinks).prev : last_) = nullptr;
    }
    return node;
  }

  /// @param node that is in this list.
  void remove(Node& node) {
    const FifoLinks<Node> links = node.*kLinks;
    (links.prev != nullptr ? (links.prev->*kLinks).next : first_) = links.next;
    (links.next != nullptr ? (links.next->*kLinks).prev : last_) = links.prev;
  }

 private:
  Node* first_ = nullptr;
  Node* last_ = nullptr;
};

}  // namespace rio::base
