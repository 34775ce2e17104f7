#include "apps/common/tag_end.hpp"

#include <cstdio>

#include "pmd/api/riopmd.h"

namespace rio::apps {

int complain(const std::string& what, int error) {
  std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what.c_str(),
               rio_strerror(-error));
  return -error;
}

TagEnd::~TagEnd() {
  constexpr uint32_t kFlushMs = 5000;
  if (endpoint_ != nullptr && !failed_) {
    static_cast<void>(endpoint_->flush(kFlushMs));
  }
}

int TagEnd::complain_of_peer(int error) {
  failed_ = true;
  return complain("exchange with destID " + std::to_string(tag::dest_id_of(peer_)), error);
}

}  // namespace rio::apps
