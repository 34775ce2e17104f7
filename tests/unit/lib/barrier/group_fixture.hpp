/// @file
/// Members of barrier groups, each with a port of its own on one wire, in one thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lib/barrier/group.hpp"
#include "tests/unit/lib/msg/net.hpp"

namespace rio::barrier::test {

class GroupNet : public msg::test::Net {
 protected:
  static constexpr uint16_t kContext = 5;

  struct Place {
    msg::MessagePort* port;
    std::unique_ptr<BarrierContext> context;
  };

  ~GroupNet() override { places_.clear(); }

  /// Opens ports with destIDs 1 to `count`, each with a context.
  void open(uint32_t count) {
    for (uint32_t id = 1; id <= count; ++id) {
      open_one(id);
    }
  }
  void open_one(uint32_t id) {
    Place place{&port(id), nullptr};
    EXPECT_EQ(BarrierContext::create(*place.port, kContext, &place.context), 0);
    places_.push_back(std::move(place));
  }
  /// Destroys the port of place `index`, as if its process had been killed.
  /// @param group of this place: it is never destroyed, or it would tell its members.
  void kill(uint32_t index, std::unique_ptr<Group>& group) {
    static auto* const kDead = new std::vector<Group*>;
    kDead->push_back(group.release());
    places_[index].context.reset();
    close(*places_[index].port);
    places_[index].port = nullptr;
  }
  [[nodiscard]] BarrierContext& at(uint32_t index) { return *places_[index].context; }
  /// Addresses of places, in this order.
  [[nodiscard]] static std::vector<msg::Address> members(std::initializer_list<uint32_t> places) {
    std::vector<msg::Address> all;
    for (const uint32_t place : places) {
      all.push_back(msg::address(place + 1, kContext));
    }
    return all;
  }
  [[nodiscard]] static std::vector<msg::Address> first(uint32_t count) {
    std::vector<msg::Address> all;
    for (uint32_t place = 0; place < count; ++place) {
      all.push_back(msg::address(place + 1, kContext));
    }
    return all;
  }
  /// Begins a member's part; the place is that of its address.
  [[nodiscard]] std::unique_ptr<Group> begin(const std::vector<msg::Address>& list, uint32_t rank,
                                             const GroupOptions& options = {}) {
    GroupOptions chosen = options;
    chosen.way = options.way == Way::kAny ? way_ : options.way;
    std::unique_ptr<Group> group;
    EXPECT_EQ(at(msg::dest_id_of(list[rank]) - 1).create_group(list, rank, chosen, &group), 0);
    return group;
  }
  using Groups = std::vector<std::unique_ptr<Group>>;
  [[nodiscard]] Groups begin_all(const std::vector<msg::Address>& list,
                                 const GroupOptions& options = {}) {
    Groups groups;
    for (uint32_t rank = 0; rank < list.size(); ++rank) {
      groups.push_back(begin(list, rank, options));
    }
    return groups;
  }

  /// Lets all places work until `done()`. @return false: it did not become true in time.
  template <class Done>
  [[nodiscard]] bool work(const Done& done) {
    return work_until([&] {
      for (const Place& place : places_) {
        if (place.context != nullptr) {
          place.context->attend();
        }
      }
      return done();
    });
  }
  /// Waits until no group is still being created.
  [[nodiscard]] bool settle(const Groups& groups) {
    return work([&] {
      return std::all_of(groups.begin(), groups.end(),
                         [](const auto& group) { return group == nullptr || group->ready() != 0; });
    });
  }
  [[nodiscard]] bool make_ready(const Groups& groups) {
    return settle(groups) && std::all_of(groups.begin(), groups.end(),
                                         [](const auto& group) { return group->ready() == 1; });
  }
  /// Lets all members arrive and pass.
  [[nodiscard]] bool meet(const Groups& groups) {
    for (const auto& group : groups) {
      if (group->arrive() != 0) {
        return false;
      }
    }
    return pass(groups);
  }
  [[nodiscard]] bool pass(const Groups& groups) {
    return work([&] {
      return std::all_of(groups.begin(), groups.end(),
                         [](const auto& group) { return group->test() == 1; });
    });
  }
  /// Waits until all groups have failed.
  [[nodiscard]] bool all_fail(const Groups& groups) {
    return work([&] {
      return std::all_of(groups.begin(), groups.end(), [](const auto& group) {
        return group == nullptr || group->failure().error != 0;
      });
    });
  }

  std::vector<Place> places_;
  Way way_ = Way::kAny;  // for groups whose options have kAny
};

/// Runs each test on cards with a barrier engine, and in software.
class GroupWays : public GroupNet, public testing::WithParamInterface<Way> {
 protected:
  GroupWays() { way_ = GetParam(); }
};

}  // namespace rio::barrier::test
