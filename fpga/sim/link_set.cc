#include "fpga/sim/link_set.hpp"

#include "base/formatted.hpp"

namespace rio::sim {

int LinkSet::check(std::span<const LinkClass> classes, std::string* error) {
  if (classes.empty() || classes.size() > kClassesMax) {
    return base::fail(error, "%zu classes of links; give 1 to %zu", classes.size(), kClassesMax);
  }
  for (size_t i = 0; i < classes.size(); ++i) {
    if (!(classes[i].loss_rate >= 0.0 && classes[i].loss_rate <= 1.0)) {
      return base::fail(error, "links of class %zu: loss rate %g; give 0.0 to 1.0", i,
                        classes[i].loss_rate);
    }
  }
  return 0;
}

LinkSet::LinkSet(uint32_t links, std::span<const LinkClass> classes)
    : classes_(classes.begin(), classes.end()),
      size_(links),
      memory_(reserve_huge(std::max<size_t>(bytes(), 1))),
      links_(static_cast<State*>(memory_.get())) {}

uint32_t LinkSet::longest_queue(uint32_t link, uint32_t len_bytes) const {
  const uint64_t each_ns = packet_ns(class_of(link), len_bytes);
  const uint64_t wait_ns = links_[link].longest_wait_ns;
  return wait_ns == 0 ? 0 : static_cast<uint32_t>((wait_ns + each_ns - 1) / each_ns);
}

uint32_t LinkSet::busiest() const {
  const State* const longest = std::max_element(
      links_, links_ + size_,
      [](const State& a, const State& b) { return a.longest_wait_ns < b.longest_wait_ns; });
  return static_cast<uint32_t>(longest - links_);
}

}  // namespace rio::sim
