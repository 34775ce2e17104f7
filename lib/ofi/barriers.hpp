/// @file
/// The barriers of a domain, behind the calls of rio_fi_barrier.h.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lib/barrier/group.hpp"
#include "lib/ofi/name.hpp"
#include "lib/ofi/rio_fi_barrier.h"

namespace rio::ofi {

class Barriers;
class Domain;

}  // namespace rio::ofi

/// A member's part of a group. If it outlives its domain, it has failed.
struct rio_fi_group {
  rio::ofi::Barriers* owner;  ///< null: its domain was closed
  std::unique_ptr<rio::barrier::Group> group;
};

namespace rio::ofi {

/// The groups of a domain, which outlives this object. All functions are called under a Guard.
class Barriers {
 public:
  /// @return 0, or as barrier::BarrierContext::create().
  [[nodiscard]] static int open(Domain& domain, std::unique_ptr<Barriers>* out);
  /// Groups that end() was not called for fail.
  ~Barriers();
  Barriers(const Barriers&) = delete;
  Barriers& operator=(const Barriers&) = delete;

  /// As rio_fi_barrier_calls::begin. @param out the caller's, until it has called end().
  [[nodiscard]] int begin(std::span<const Name> names, uint32_t rank, uint64_t key,
                          rio_fi_group** out);
  /// As rio_fi_barrier_calls::end. Deletes the group.
  void end(rio_fi_group* group);

  [[nodiscard]] Domain& domain() { return domain_; }
  /// Hot. Let the groups work. Called after progress of the port.
  void attend() { context_->attend(); }
  /// Hot. Let the port and the groups work, without the endpoints.
  void progress() { context_->progress(); }

 private:
  explicit Barriers(Domain& domain) : domain_(domain) {}

  Domain& domain_;
  std::unique_ptr<barrier::BarrierContext> context_;
  std::vector<rio_fi_group*> groups_;
};

}  // namespace rio::ofi
