#include "lib/msg/card_health.hpp"

#include <cerrno>

#include "base/log.hpp"

namespace rio::msg {

bool CardHealth::has_just_gone() {
  if (--until_look_ != 0) {
    return false;
  }
  until_look_ = kLooksPerCard;
  pmd::Card& card = endpoint_.card();
  if (error_ != 0 || (!card.gone() && !card.was_reset())) {
    return false;
  }
  error_ = -ENODEV;
  base::log_error("%s %s; close the port, and open it again", endpoint_.name().c_str(),
                  card.gone() ? "is gone" : "was reset by another program");
  return true;
}

void CardHealth::fail(const char* what) {
  if (error_ == 0) {
    error_ = -ENODEV;
    base::log_error("%s does not %s its transmit ring; reset the card, and open the port again",
                    endpoint_.name().c_str(), what);
  }
}

}  // namespace rio::msg
