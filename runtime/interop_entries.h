// SPDX-License-Identifier: Apache-2.0
// Prototypes of the driver's entries for OpenGL, EGL and VDPAU. CUDA's own headers for them
// (cudaGL.h, cudaEGL.h, cudaVDPAU.h) need those of the other APIs, which a build machine seldom
// has; the wrappers look at no argument but streams and contexts, so stand-ins of the same size and
// class do. The names are those of CUDA's typedef headers. Types only.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // the types of older ABIs
#endif
#include <cuda.h>

#include <cstdint>

namespace runtime::interop {

// GLuint and GLenum, VdpDevice, VdpVideoSurface, VdpOutputSurface: 32-bit names.
using Name = std::uint32_t;
// EGLImageKHR, EGLStreamKHR, EGLSyncKHR, CUeglStreamConnection, and pointers to functions.
using Handle = void*;
using DeviceList = int;  // CUGLDeviceList, an enum

// CUeglFrame: three plane pointers, six sizes, three enums, and what fills it up, named so that
// every copy takes all of it. Passed by value in memory, not in registers, for it is larger than 16
// bytes.
struct Frame {
  void* planes[3];
  std::uint32_t values[9];
  std::uint32_t padding;
};
static_assert(sizeof(Frame) == 64);

}  // namespace runtime::interop

#define INTEROP_PROTOTYPE(name, ...) using PFN_##name = CUresult(CUDAAPI*)(__VA_ARGS__)

INTEROP_PROTOTYPE(cuGLInit_v2000, );
INTEROP_PROTOTYPE(cuGLCtxCreate_v2000, CUcontext*, unsigned, CUdevice);
INTEROP_PROTOTYPE(cuGLCtxCreate_v3020, CUcontext*, unsigned, CUdevice);
INTEROP_PROTOTYPE(cuGLGetDevices_v4010, unsigned*, CUdevice*, unsigned,
                  runtime::interop::DeviceList);
INTEROP_PROTOTYPE(cuGLGetDevices_v6050, unsigned*, CUdevice*, unsigned,
                  runtime::interop::DeviceList);
INTEROP_PROTOTYPE(cuGLRegisterBufferObject_v2000, runtime::interop::Name);
INTEROP_PROTOTYPE(cuGLUnregisterBufferObject_v2000, runtime::interop::Name);
INTEROP_PROTOTYPE(cuGLSetBufferObjectMapFlags_v2030, runtime::interop::Name, unsigned);
INTEROP_PROTOTYPE(cuGLMapBufferObject_v2000, CUdeviceptr_v1*, unsigned*, runtime::interop::Name);
INTEROP_PROTOTYPE(cuGLMapBufferObject_v3020, CUdeviceptr*, size_t*, runtime::interop::Name);
INTEROP_PROTOTYPE(cuGLMapBufferObject_v7000_ptds, CUdeviceptr*, size_t*, runtime::interop::Name);
INTEROP_PROTOTYPE(cuGLMapBufferObjectAsync_v2030, CUdeviceptr_v1*, unsigned*,
                  runtime::interop::Name, CUstream);
INTEROP_PROTOTYPE(cuGLMapBufferObjectAsync_v3020, CUdeviceptr*, size_t*, runtime::interop::Name,
                  CUstream);
INTEROP_PROTOTYPE(cuGLMapBufferObjectAsync_v7000_ptsz, CUdeviceptr*, size_t*,
                  runtime::interop::Name, CUstream);
INTEROP_PROTOTYPE(cuGLUnmapBufferObject_v2000, runtime::interop::Name);
INTEROP_PROTOTYPE(cuGLUnmapBufferObjectAsync_v2030, runtime::interop::Name, CUstream);
INTEROP_PROTOTYPE(cuGraphicsGLRegisterBuffer_v3000, CUgraphicsResource*, runtime::interop::Name,
                  unsigned);
INTEROP_PROTOTYPE(cuGraphicsGLRegisterImage_v3000, CUgraphicsResource*, runtime::interop::Name,
                  runtime::interop::Name, unsigned);

INTEROP_PROTOTYPE(cuEGLStreamConsumerConnect_v7000, runtime::interop::Handle*,
                  runtime::interop::Handle);
INTEROP_PROTOTYPE(cuEGLStreamConsumerConnectWithFlags_v8000, runtime::interop::Handle*,
                  runtime::interop::Handle, unsigned);
INTEROP_PROTOTYPE(cuEGLStreamConsumerDisconnect_v7000, runtime::interop::Handle*);
INTEROP_PROTOTYPE(cuEGLStreamConsumerAcquireFrame_v7000, runtime::interop::Handle*,
                  CUgraphicsResource*, CUstream*, unsigned);
INTEROP_PROTOTYPE(cuEGLStreamConsumerReleaseFrame_v7000, runtime::interop::Handle*,
                  CUgraphicsResource, CUstream*);
INTEROP_PROTOTYPE(cuEGLStreamProducerConnect_v7000, runtime::interop::Handle*,
                  runtime::interop::Handle, std::int32_t, std::int32_t);
INTEROP_PROTOTYPE(cuEGLStreamProducerDisconnect_v7000, runtime::interop::Handle*);
INTEROP_PROTOTYPE(cuEGLStreamProducerPresentFrame_v7000, runtime::interop::Handle*,
                  runtime::interop::Frame, CUstream*);
INTEROP_PROTOTYPE(cuEGLStreamProducerReturnFrame_v7000, runtime::interop::Handle*,
                  runtime::interop::Frame*, CUstream*);
INTEROP_PROTOTYPE(cuEventCreateFromEGLSync_v9000, CUevent*, runtime::interop::Handle, unsigned);
INTEROP_PROTOTYPE(cuGraphicsEGLRegisterImage_v7000, CUgraphicsResource*, runtime::interop::Handle,
                  unsigned);
INTEROP_PROTOTYPE(cuGraphicsResourceGetMappedEglFrame_v7000, runtime::interop::Frame*,
                  CUgraphicsResource, unsigned, unsigned);

INTEROP_PROTOTYPE(cuVDPAUGetDevice_v3010, CUdevice*, runtime::interop::Name,
                  runtime::interop::Handle);
INTEROP_PROTOTYPE(cuVDPAUCtxCreate_v3010, CUcontext*, unsigned, CUdevice, runtime::interop::Name,
                  runtime::interop::Handle);
INTEROP_PROTOTYPE(cuVDPAUCtxCreate_v3020, CUcontext*, unsigned, CUdevice, runtime::interop::Name,
                  runtime::interop::Handle);
INTEROP_PROTOTYPE(cuGraphicsVDPAURegisterVideoSurface_v3010, CUgraphicsResource*,
                  runtime::interop::Name, unsigned);
INTEROP_PROTOTYPE(cuGraphicsVDPAURegisterOutputSurface_v3010, CUgraphicsResource*,
                  runtime::interop::Name, unsigned);

#undef INTEROP_PROTOTYPE
