// SPDX-License-Identifier: Apache-2.0
// The prototypes of runtime/interop_entries.h against CUDA's own, where the headers of the other
// APIs are installed: the same number of parameters, each passed the same way.
#include <type_traits>

// A toolkit of PyPI wheels may lack CUDA's part, a build machine that of the other API.
#if __has_include(<GL/gl.h>) && __has_include(<cudaGLTypedefs.h>)
#define HAS_GL
#endif
#if __has_include(<EGL/egl.h>) && __has_include(<EGL/eglext.h>) && \
    __has_include(<cudaEGLTypedefs.h>)
#define HAS_EGL
#endif
#if __has_include(<vdpau/vdpau.h>) && __has_include(<cudaVDPAUTypedefs.h>)
#define HAS_VDPAU
#endif

#define __CUDA_API_VERSION_INTERNAL  // the types of older ABIs
// What CUDA's typedef headers include, outside the namespace that they are put into.
#include <cuda.h>
#include <cudaTypedefs.h>
#ifdef HAS_GL
#include <cudaGL.h>
#endif
#ifdef HAS_EGL
#include <cudaEGL.h>
#endif
#ifdef HAS_VDPAU
#include <cudaVDPAU.h>
#endif

namespace official {
#ifdef HAS_GL
#include <cudaGLTypedefs.h>
#endif
#ifdef HAS_EGL
#include <cudaEGLTypedefs.h>
#endif
#ifdef HAS_VDPAU
#include <cudaVDPAUTypedefs.h>
#endif
}  // namespace official

#include "runtime/interop_entries.h"

namespace {

template <typename T>
constexpr int class_of() {
  // An enum goes where an integer of its size goes.
  return std::is_pointer_v<T> ? 1 : std::is_class_v<T> ? 2 : 3;
}

template <typename Ours, typename Theirs>
struct Same : std::false_type {};
template <typename... Ours, typename... Theirs>
requires(sizeof...(Ours) ==
         sizeof...(Theirs)) struct Same<CUresult(CUDAAPI*)(Ours...), CUresult(CUDAAPI*)(Theirs...)>
    : std::bool_constant<((sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs) &&
                           class_of<Ours>() == class_of<Theirs>()) &&
                          ...)> {
};

#define SAME(name) static_assert(Same<::PFN_##name, official::PFN_##name>::value)
#ifdef HAS_GL
SAME(cuGLInit_v2000);
SAME(cuGLCtxCreate_v2000);
SAME(cuGLCtxCreate_v3020);
SAME(cuGLGetDevices_v4010);
SAME(cuGLGetDevices_v6050);
SAME(cuGLRegisterBufferObject_v2000);
SAME(cuGLUnregisterBufferObject_v2000);
SAME(cuGLSetBufferObjectMapFlags_v2030);
SAME(cuGLMapBufferObject_v2000);
SAME(cuGLMapBufferObject_v3020);
SAME(cuGLMapBufferObject_v7000_ptds);
SAME(cuGLMapBufferObjectAsync_v2030);
SAME(cuGLMapBufferObjectAsync_v3020);
SAME(cuGLMapBufferObjectAsync_v7000_ptsz);
SAME(cuGLUnmapBufferObject_v2000);
SAME(cuGLUnmapBufferObjectAsync_v2030);
SAME(cuGraphicsGLRegisterBuffer_v3000);
SAME(cuGraphicsGLRegisterImage_v3000);
#endif
#ifdef HAS_EGL
SAME(cuEGLStreamConsumerConnect_v7000);
SAME(cuEGLStreamConsumerConnectWithFlags_v8000);
SAME(cuEGLStreamConsumerDisconnect_v7000);
SAME(cuEGLStreamConsumerAcquireFrame_v7000);
SAME(cuEGLStreamConsumerReleaseFrame_v7000);
SAME(cuEGLStreamProducerConnect_v7000);
SAME(cuEGLStreamProducerDisconnect_v7000);
SAME(cuEGLStreamProducerPresentFrame_v7000);
SAME(cuEGLStreamProducerReturnFrame_v7000);
SAME(cuEventCreateFromEGLSync_v9000);
SAME(cuGraphicsEGLRegisterImage_v7000);
SAME(cuGraphicsResourceGetMappedEglFrame_v7000);
#endif
#ifdef HAS_VDPAU
SAME(cuVDPAUGetDevice_v3010);
SAME(cuVDPAUCtxCreate_v3010);
SAME(cuVDPAUCtxCreate_v3020);
SAME(cuGraphicsVDPAURegisterVideoSurface_v3010);
SAME(cuGraphicsVDPAURegisterOutputSurface_v3010);
#endif

}  // namespace
