/// @file
/// The contexts of an endpoint, whose name (job::Name) fi_getname() returns and fi_av_insert()
/// takes.
#pragma once

#include <cstdint>

#include "lib/job/name.hpp"
#include "lib/tag/request.hpp"

namespace rio::ofi {

using job::fabric_mark;
using job::kContextsOfEndpoint;
using job::kEndpoints;
using job::kNameMagic;
using job::kTaggedContext;
using job::Name;
using job::read_name;

inline constexpr uint32_t kPlainContext = 1;
inline constexpr uint32_t kRemoteContext = 2;  ///< requests on each other's memory
/// The context of answers. It is separate, so that requests waiting for credits cannot block
/// answers.
inline constexpr uint32_t kReplyContext = 3;
static_assert(kReplyContext < kContextsOfEndpoint);

/// Context of a name's tagged messages. @param dest_id the destID to which they go.
[[nodiscard]] inline tag::Address context_of(const Name& name, uint32_t dest_id) {
  return job::tagged_address(name, dest_id);
}

}  // namespace rio::ofi
