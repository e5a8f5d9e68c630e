// SPDX-License-Identifier: Apache-2.0
// User objects: entries, the references that graphs hold, and the thread that runs destructors.
#include "tools/softgpu/driver/user_object.h"

#include <climits>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/graph.h"
#include "tools/softgpu/driver/own_thread.h"

namespace softgpu {

namespace {

// Destructors may not block and may not be waited for by any CUDA call, so one thread of its own
// runs them in the order in which the objects died. Never destroyed: the thread may outlive main().
class DestructorThread {
 public:
  static DestructorThread& get() {
    static DestructorThread& instance = *new DestructorThread;
    return instance;
  }

  void run(CUhostFn function, void* pointer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.push_back({function, pointer});
    if (!is_running_) {
      start_thread([this] { loop(); });
      is_running_ = true;
    }
    changed_.notify_one();
  }

 private:
  struct Call {
    CUhostFn function;
    void* pointer;
  };

  void loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !calls_.empty(); });
      const Call next = calls_.front();
      calls_.pop_front();
      lock.unlock();
      next.function(next.pointer);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call> calls_;
  bool is_running_ = false;
};

std::shared_ptr<UserObject> object_of(CUuserObject handle) {
  auto object = user_objects().find_shared(handle);
  if (object == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  return object;
}

void check_count(unsigned count) {
  if (count == 0 || count > INT_MAX) fail(CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

UserObjectTable& user_objects() {
  static UserObjectTable& table = *new UserObjectTable;
  return table;
}

void release_references(UserObject& object, std::uint64_t count) {
  object.references -= count;
  if (object.references > 0) return;
  DestructorThread::get().run(object.destroy, object.pointer);
  user_objects().remove(object.handle);
}

UserObjectRefs::~UserObjectRefs() {
  for (const auto& [object, count] : counts_) release_references(*object, count);
}

void UserObjectRefs::adopt(const std::shared_ptr<UserObject>& object, std::uint64_t count) {
  counts_[object] += count;
}

void UserObjectRefs::add_all(const UserObjectRefs& other) {
  for (const auto& [object, count] : other.counts_) {
    ++object->references;
    ++counts_[object];
  }
}

bool UserObjectRefs::remove(const std::shared_ptr<UserObject>& object, std::uint64_t count) {
  auto found = counts_.find(object);
  if (found == counts_.end() || found->second < count) return false;
  found->second -= count;
  if (found->second == 0) counts_.erase(found);
  release_references(*object, count);
  return true;
}

}  // namespace softgpu

using namespace softgpu;  // NOLINT: entries are C functions outside any namespace

extern "C" {

CUresult CUDAAPI cuUserObjectCreate(CUuserObject* object_out, void* ptr, CUhostFn destroy,
                                    unsigned int initialRefcount, unsigned int flags) {
  return call(EntryId::cuUserObjectCreate, [&]() -> CUresult {
    if (object_out == nullptr || destroy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) return CUDA_ERROR_INVALID_VALUE;
    check_count(initialRefcount);
    auto object = std::make_shared<UserObject>();
    object->pointer = ptr;
    object->destroy = destroy;
    object->references = object->caller_references = initialRefcount;
    object->handle = user_objects().add(object);
    *object_out = object->handle;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuUserObjectRetain(CUuserObject object, unsigned int count) {
  return call(EntryId::cuUserObjectRetain, [&]() -> CUresult {
    const auto found = object_of(object);
    check_count(count);
    found->references += count;
    found->caller_references += count;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuUserObjectRelease(CUuserObject object, unsigned int count) {
  return call(EntryId::cuUserObjectRelease, [&]() -> CUresult {
    const auto found = object_of(object);
    check_count(count);
    if (found->caller_references < count) return CUDA_ERROR_INVALID_VALUE;
    found->caller_references -= count;
    release_references(*found, count);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                         unsigned int flags) {
  return call(EntryId::cuGraphRetainUserObject, [&]() -> CUresult {
    Graph& target = graph_of(graph);
    const auto found = object_of(object);
    check_count(count);
    if ((flags & ~static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE)) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_GRAPH_USER_OBJECT_MOVE) != 0) {
      if (found->caller_references < count) return CUDA_ERROR_INVALID_VALUE;
      found->caller_references -= count;
    } else {
      found->references += count;
    }
    target.user_objects.adopt(found, count);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
  return call(EntryId::cuGraphReleaseUserObject, [&]() -> CUresult {
    Graph& target = graph_of(graph);
    const auto found = object_of(object);
    check_count(count);
    return target.user_objects.remove(found, count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // extern "C"
