#include "lib/tag/matcher.hpp"

namespace rio::tag {

int Matcher::create(const HashSeed& seed, const MatcherConfig& config) {
  if (const int rc = receives_.create(seed, config.receives, config.first_number); rc != 0) {
    return rc;
  }
  return messages_.create(seed, config.messages);
}

Message* Matcher::post_any(Receive& receive) {
  Message* message = messages_.empty() ? nullptr : messages_.take(receive);
  if (message == nullptr) {
    receives_.add(receive);
  }
  return message;
}

}  // namespace rio::tag
